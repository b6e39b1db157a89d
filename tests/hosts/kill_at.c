/* Preloaded: kills the process in front of its K-th system call that concerns a
   checkpoint (KILL_AT=K), counted over paths that hold "checkpoints", or the text
   in KILL_IN, and files opened there. With FAIL_WITH=ERRNO that call and the
   FAIL_MORE calls after it fail instead, or each second call without KILL_AT; then
   looks at files count too. With KILL_COUNT=FILE it writes how many there were. With
   RAISE_EARLY=SIGNAL that signal comes while the libraries are loaded. With SLOW_EXIT, some time
   passes at the end between the closing of the socket to MPICH's launcher and the exit. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_int calls;
static atomic_char ours[1024];

static int number(const char* name, int otherwise) {
  const char* text = getenv(name);
  return text ? atoi(text) : otherwise;
}

/* Whether the call fails, with errno set. */
static int count(void) {
  const int call = atomic_fetch_add(&calls, 1) + 1;
  const int at = number("KILL_AT", -1);
  const int error = number("FAIL_WITH", 0);
  if (error == 0 && call == at) {
    kill(getpid(), SIGKILL);
  }
  const int fails =
      at < 0 ? call % 2 : call >= at && call <= at + number("FAIL_MORE", 0);
  if (error == 0 || !fails) {
    return 0;
  }
  errno = error;
  return 1;
}

static int concerns(const char* path) {
  const char* text = getenv("KILL_IN");
  return path != NULL && strstr(path, text ? text : "checkpoints") != NULL;
}

__attribute__((constructor)) static void raise_early(void) {
  if (getenv("RAISE_EARLY")) {
    raise(number("RAISE_EARLY", 0));
  }
}

__attribute__((destructor)) static void tell(void) {
  const char* file = getenv("KILL_COUNT");
  FILE* out = file ? fopen(file, "w") : NULL;
  if (out) {
    fprintf(out, "%d\n", atomic_load(&calls));
    fclose(out);
  }
}

#define NEXT(type, name) ((type)dlsym(RTLD_NEXT, name))

static int opened(int file, const char* path) {
  if (file >= 0 && file < 1024) {
    ours[file] = concerns(path);
  }
  return file;
}

static int is_ours(int file) {
  return file >= 0 && file < 1024 && ours[file];
}

#define OPEN(name)                                                       \
  int name(const char* path, int flags, ...) {                           \
    va_list list;                                                        \
    va_start(list, flags);                                               \
    const mode_t mode = flags & O_CREAT ? va_arg(list, mode_t) : 0;      \
    va_end(list);                                                        \
    if (concerns(path) && count()) return -1;                            \
    return opened(                                                       \
        NEXT(int (*)(const char*, int, ...), #name)(path, flags, mode),  \
        path);                                                           \
  }
OPEN(open)
OPEN(open64)

ssize_t write(int file, const void* data, size_t size) {
  if (is_ours(file) && count()) return -1;
  return NEXT(ssize_t (*)(int, const void*, size_t), "write")(file, data, size);
}

int fsync(int file) {
  if (is_ours(file) && count()) return -1;
  return NEXT(int (*)(int), "fsync")(file);
}

int close(int file) {
  int error = 0;
  if (is_ours(file)) {
    error = count() ? errno : 0;
    ours[file] = 0;
  }
  const int result = NEXT(int (*)(int), "close")(file); /* also where it fails */
  errno = error ? error : errno;
  return error ? -1 : result;
}

int rename(const char* from, const char* to) {
  if (concerns(from) && count()) return -1;
  return NEXT(int (*)(const char*, const char*), "rename")(from, to);
}

#define LOOK(name)                                                                \
  int name(const char* path, struct stat* status) {                               \
    if (getenv("FAIL_WITH") && concerns(path) && count()) return -1;              \
    return NEXT(int (*)(const char*, struct stat*), #name)(path, status);         \
  }
LOOK(stat)
LOOK(lstat)

int mkdir(const char* path, mode_t mode) {
  if (concerns(path) && count()) return -1;
  return NEXT(int (*)(const char*, mode_t), "mkdir")(path, mode);
}

int remove(const char* path) {
  if (concerns(path) && count()) return -1;
  return NEXT(int (*)(const char*), "remove")(path);
}

/* Names below an opened folder: every one of ours removes in checkpoints only. */
int unlinkat(int folder, const char* path, int flags) {
  if (!getenv("KILL_IN") && count()) return -1;
  return NEXT(int (*)(int, const char*, int), "unlinkat")(folder, path, flags);
}

void _Exit(int code) {
  if (getenv("SLOW_EXIT")) {
    NEXT(int (*)(int), "close")(number("PMI_FD", -1));
    usleep(300000);
  }
  _exit(code);
}
