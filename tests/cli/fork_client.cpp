// Stands for the program in tests: has a fork of the loaded one do what it is
// asked for (fork_server.cpp), and ends as that does. $ABTRAIN_SERVER is the
// name of the server's socket.
#include <signal.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "fork_socket.h"

int main(int argc, char** argv) {
  const char* name = std::getenv("ABTRAIN_SERVER");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string_view text = name == nullptr ? "" : name;
  text.copy(address.sun_path + 1, sizeof(address.sun_path) - 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  abtrain::Start start;
  start.folder = std::filesystem::current_path();
  start.words.assign(argv, argv + argc);
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    if (!std::string_view(*entry).starts_with("ABTRAIN_SERVER=")) {
      start.environment.emplace_back(*entry);
    }
  }
  int status = 0;
  if (::connect(socket, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      !abtrain::send(socket, start) || !abtrain::read_all(socket, &status, sizeof(status))) {
    std::fprintf(stderr, "fork_client: no answer from '%s'\n", address.sun_path + 1);
    return 125;
  }
  if (WIFSIGNALED(status)) {
    ::signal(WTERMSIG(status), SIG_DFL);
    ::raise(WTERMSIG(status));
  }
  return WEXITSTATUS(status);
}
