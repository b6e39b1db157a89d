// Older versions of two symbols, which do the same as those that a newer
// machine links: with them the portable programs run on RHEL 9 (glibc 2.34, GCC
// 11's libstdc++) too. cmake/Static.cmake sends all calls here with the
// linker's --wrap.
extern "C" {

#if defined(__aarch64__)
__asm__(".symver old_hypot, hypot@GLIBC_2.17");
#else
__asm__(".symver old_hypot, hypot@GLIBC_2.2.5");
#endif
double old_hypot(double x, double y);
double __wrap_hypot(double x, double y) {
  return old_hypot(x, y);
}

// std::condition_variable::wait(std::unique_lock<std::mutex>&)
__asm__(
    ".symver old_wait, "
    "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE@GLIBCXX_3.4.11");
void old_wait(void* condition, void* lock);
void __wrap__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE(void* condition, void* lock) {
  old_wait(condition, lock);
}
}
