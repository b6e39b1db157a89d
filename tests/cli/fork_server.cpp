// Preloaded into the program: instead of its main(), it answers fork_client.cpp
// with a fork of the loaded program that runs main() with the client's words,
// environment, folder and streams. LibTorch, whose loading takes most of the
// time of a short command, is loaded once.
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "fork_socket.h"

namespace {

using Main = int (*)(int, char**, char**);
Main program_main = nullptr;

// Runs main() for the client and tells it how that ended.
void answer(int client) {
  abtrain::Start start;
  if (!abtrain::receive(client, start)) {
    return;
  }
  const pid_t child = ::fork();
  if (child != 0) {
    int status = -1;
    ::waitpid(child, &status, 0);
    (void)!::write(client, &status, sizeof(status));
    return;
  }
  ::close(client);
  for (int i = 0; i < 3; ++i) {
    ::dup2(start.streams[i], i);
    ::close(start.streams[i]);
  }
  if (::chdir(start.folder.c_str()) != 0) {
    ::_exit(127);
  }
  ::clearenv();
  for (std::string& entry : start.environment) {
    ::putenv(entry.data());
  }
  std::vector<char*> words;
  for (std::string& word : start.words) {
    words.push_back(word.data());
  }
  words.push_back(nullptr);
  const int argc = static_cast<int>(start.words.size());
  std::exit(program_main(argc, words.data(), ::environ));
}

int serve(int argc, char** argv, char** environment) {
  const char* listening = std::getenv("ABTRAIN_SERVE");
  if (listening == nullptr) {
    return program_main(argc, argv, environment);
  }
  const int server = std::atoi(listening);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // it ends with the test
  ::fcntl(server, F_SETFD, FD_CLOEXEC);
  for (int client; (client = ::accept(server, nullptr, nullptr)) >= 0;) {
    if (const pid_t child = ::fork(); child == 0) {
      if (::fork() == 0) {  // which the server need not wait for
        ::close(server);
        answer(client);
      }
      ::_exit(0);
    } else {
      ::waitpid(child, nullptr, 0);
    }
    ::close(client);
  }
  return 1;
}

}  // namespace

extern "C" int __libc_start_main(
    Main main, int argc, char** argv, void (*init)(), void (*fini)(), void (*rtld_fini)(),
    void* stack_end) {
  program_main = main;
  const auto next =
      reinterpret_cast<decltype(&__libc_start_main)>(::dlsym(RTLD_NEXT, "__libc_start_main"));
  return next(serve, argc, argv, init, fini, rtld_fini, stack_end);
}
