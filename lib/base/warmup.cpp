#include "base/warmup.h"

#include "base/scalars.h"
#include "base/text.h"

namespace abtrain {

void check_warmup(
    const std::string& key, const Duration& warmup, const StatedLength& length, const char* what,
    Conflicts& out, bool may_fill) {
  const bool is_share = warmup.unit == Duration::Unit::Percent;
  const double whole = is_share ? 100 : length.run.value;
  if ((!is_share && warmup.unit != length.run.unit) ||
      (may_fill ? warmup.value <= whole : warmup.value < whole)) {
    return;
  }
  out.push_back(
      {{key, length.key, "method.name"},
       formatted(
           "a warm-up of {} leaves no {} in a run of {}", print_duration(warmup), what,
           print_duration(length.run))});
}

}  // namespace abtrain
