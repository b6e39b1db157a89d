// Lets portable programs run on older systems than the one that links them: on glibc 2.28 and GCC
// 8's libstdc++ (RHEL 8), and on anything newer. Each function below stands for one of the same name
// that is younger. cmake/Static.cmake sends all calls here, with the linker's --wrap.
#include <pthread.h>
#include <sys/stat.h>

#include <ctime>
#include <new>

#if defined(__aarch64__)
#define ABT_JUMP "b "
constexpr int kStatVersion = 0;
#else
#define ABT_JUMP "jmp "
constexpr int kStatVersion = 1;
#endif

// Calls go on to the oldest version of the function, which does the same.
#define ABT_OLD(name)                                              \
  __asm__(".symver old_" #name ", " #name "@" ABTRAIN_OLDEST_GLIBC \
          "\n"                                                     \
          ".text\n.globl __wrap_" #name "\n.type __wrap_" #name    \
          ", @function\n"                                          \
          "__wrap_" #name ": " ABT_JUMP "old_" #name "\n");

// Newer versions do not set errno, or have moved to libc.so.
ABT_OLD(exp)
ABT_OLD(hypot)
ABT_OLD(log)
ABT_OLD(pow)
ABT_OLD(dladdr)
ABT_OLD(dlclose)
ABT_OLD(dlerror)
ABT_OLD(dlopen)
ABT_OLD(dlsym)
ABT_OLD(pthread_create)
ABT_OLD(pthread_getspecific)
ABT_OLD(pthread_join)
ABT_OLD(pthread_key_create)
ABT_OLD(pthread_key_delete)
ABT_OLD(pthread_once)
ABT_OLD(pthread_rwlock_rdlock)
ABT_OLD(pthread_rwlock_unlock)
ABT_OLD(pthread_rwlock_wrlock)
ABT_OLD(pthread_setspecific)

extern "C" {

// Since glibc 2.32; shared pointers count without atomic operations while it is true.
char __libc_single_threaded = 0;

// Functions since glibc 2.33, macros before.
int __xstat(int version, const char* path, struct stat* out);
int __lxstat(int version, const char* path, struct stat* out);
int __fxstat(int version, int file, struct stat* out);
int __wrap_stat(const char* path, struct stat* out) {
  return __xstat(kStatVersion, path, out);
}
int __wrap_lstat(const char* path, struct stat* out) {
  return __lxstat(kStatVersion, path, out);
}
int __wrap_fstat(int file, struct stat* out) {
  return __fxstat(kStatVersion, file, out);
}

// Since glibc 2.30: waits until a time of another clock, by the time that is left.
static timespec on_wall_clock(clockid_t clock, const timespec* until) {
  constexpr long kBillion = 1'000'000'000;
  timespec now{}, wall{};
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &wall);
  wall.tv_sec += until->tv_sec - now.tv_sec;
  wall.tv_nsec += until->tv_nsec - now.tv_nsec;
  const long carry = wall.tv_nsec < 0 ? -1 : wall.tv_nsec / kBillion;
  wall.tv_sec += carry;
  wall.tv_nsec -= carry * kBillion;
  return wall;
}
int __wrap_pthread_cond_clockwait(
    pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const timespec* until) {
  const timespec wall = on_wall_clock(clock, until);
  return pthread_cond_timedwait(condition, mutex, &wall);
}
__asm__(".symver old_timedlock, pthread_mutex_timedlock@" ABTRAIN_OLDEST_GLIBC);
int old_timedlock(pthread_mutex_t* mutex, const timespec* until);
int __wrap_pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, const timespec* until) {
  const timespec wall = on_wall_clock(clock, until);
  return old_timedlock(mutex, &wall);
}

// Since glibc 2.34 it calls the constructors itself where it gets no function for them.
__asm__(".symver old_start, __libc_start_main@" ABTRAIN_OLDEST_GLIBC);
using Main = int(int, char**, char**);
int old_start(Main* main, int argc, char** argv, Main* init, void (*)(), void (*)(), void*);
extern Main* __preinit_array_start[] __attribute__((visibility("hidden")));
extern Main* __preinit_array_end[] __attribute__((visibility("hidden")));
extern Main* __init_array_start[] __attribute__((visibility("hidden")));
extern Main* __init_array_end[] __attribute__((visibility("hidden")));
void _init();
static int construct(int argc, char** argv, char** environment) {
  for (Main** each = __preinit_array_start; each != __preinit_array_end; ++each) {
    (*each)(argc, argv, environment);
  }
  _init();
  for (Main** each = __init_array_start; each != __init_array_end; ++each) {
    (*each)(argc, argv, environment);
  }
  return 0;
}
int __wrap___libc_start_main(
    Main* main, int argc, char** argv, Main*, void (*)(), void (*unload)(), void* stack) {
  return old_start(main, argc, argv, construct, nullptr, unload, stack);
}

// std::condition_variable::wait(std::unique_lock<std::mutex>&)
__asm__(
    ".symver old_wait, "
    "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE@GLIBCXX_3.4.11");
void old_wait(void* condition, void* lock);
void __wrap__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE(void* condition, void* lock) {
  old_wait(condition, lock);
}

// std::runtime_error(std::runtime_error&&) copies.
void _ZNSt13runtime_errorC1ERKS_(void* made, const void* from);
void __wrap__ZNSt13runtime_errorC1EOS_(void* made, const void* from) {
  _ZNSt13runtime_errorC1ERKS_(made, from);
}
void __wrap__ZNSt13runtime_errorC2EOS_(void* made, const void* from) {
  _ZNSt13runtime_errorC1ERKS_(made, from);
}

[[noreturn]] void __wrap__ZSt28__throw_bad_array_new_lengthv() {
  throw std::bad_array_new_length();
}

}  // extern "C"

// std::stringbuf::str() const&
#define ABT_STR "_ZNKSt7__cxx1115basic_stringbufIcSt11char_traitsIcESaIcEE3strEv"
#define ABT_NEW_STR "__wrap__ZNKRSt7__cxx1115basic_stringbufIcSt11char_traitsIcESaIcEE3strEv"
__asm__(".text\n.globl " ABT_NEW_STR "\n.type " ABT_NEW_STR ", @function\n"
        ABT_NEW_STR ": " ABT_JUMP ABT_STR "\n");
