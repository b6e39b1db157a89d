#include "sweep/resolve_points.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/mapped.h"
#include "base/options.h"
#include "base/options_apply.h"
#include "config/check_run.h"
#include "config/config.h"
#include "data/dataset.h"

namespace abtrain::sweep {

namespace {

std::string hash_of(const config::RunOptions& options) {
  return formatted("{:08x}", static_cast<std::uint32_t>(hash_of_text(content_of(options))));
}

// Collects the faults of points, equal ones once.
class Faults {
 public:
  Faults(const Sweep& sweep, std::size_t points) : source_(sweep.source()), points_(points) {}

  // Runs `body`, which checks one point, and records the Error that it throws.
  void note(std::size_t index, const std::string& label, const auto& body) {
    try {
      body();
    } catch (const LocatedError& error) {
      add(error.kind(), error.what(), index, label);
    } catch (const Error& error) {
      add(error.kind(), formatted("{}: error: {}", source_, error.what()), index, label);
    }
  }

  void throw_any() const {
    if (faults_.empty()) {
      return;
    }
    const auto text = [&](const Fault& fault) {
      return formatted("{}\n  {}", fault.text, where(fault));
    };
    throw LocatedError(faults_.front().kind, join(mapped(faults_, text), "\n"));
  }

 private:
  struct Fault {
    ErrorKind kind;
    std::string text;
    std::vector<std::string> points;
  };

  void add(ErrorKind kind, const std::string& text, std::size_t index, const std::string& label) {
    auto fault = std::ranges::find(faults_, text, &Fault::text);
    if (fault == faults_.end()) {
      fault = faults_.insert(fault, Fault{kind, text, {}});
    }
    fault->points.push_back(formatted("{} ({})", index, label));
  }

  std::string where(const Fault& fault) const {
    constexpr std::size_t kShown = 4;
    std::vector<std::string> shown = fault.points;
    if (shown.size() > kShown) {
      shown.resize(kShown);
      shown.push_back(formatted("{} more", fault.points.size() - kShown));
    }
    return formatted(
        "{}{}",
        fault.points.size() == points_ ? formatted("at all {} points: ", points_)
        : fault.points.size() == 1
            ? "at point "
            : formatted("at {} of {} points: ", fault.points.size(), points_),
        join(shown, ", "));
  }

  std::string source_;
  std::size_t points_;
  std::vector<Fault> faults_;
};

// Checks, as far as possible without creating it, that the run's folder can be created.
void check_place(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path place = folder;
  while (!fs::exists(place, error) && !error && place.has_relative_path()) {
    place = place.has_parent_path() ? place.parent_path() : ".";
  }
  ABT_CHECK(!error, Io, "output: cannot use '{}': {}", folder, error.message());
  ABT_CHECK(
      fs::is_directory(place, error), Io, "output: cannot make '{}': '{}' is not a folder", folder,
      place.string());
  ABT_CHECK(
      place == folder || ::access(place.c_str(), W_OK | X_OK) == 0, Io,
      "output: cannot write in '{}': {}", place.string(), std::generic_category().message(errno));
}

}  // namespace

std::string content_of(config::RunOptions options) {
  const config::RunOptions defaults;
  options.name = defaults.name;
  options.output = defaults.output;
  return config::to_yaml(options);
}

PointRun resolve(const Sweep& sweep, const Point& point) {
  PointRun run{point.index, point.label, {}, ""};
  config::ConfigContext context{
      .folders = sweep.folders,
      .shares_overrides = true,
      .last = sweep.common,
      .notes = &run.notes};
  context.last.insert(context.last.end(), sweep.sets.begin(), sweep.sets.end());
  std::ranges::transform(point.values, std::back_inserter(context.last), &Assignment::override);
  run.options = config::read_config(sweep.base, {}, context);
  const std::string output = sweep.output.empty() ? run.options.output : sweep.output;
  run.options.output = (std::filesystem::path(output) / sweep.name).string();
  run.options.name = point.label + "-" + hash_of(run.options);
  run.folder = (std::filesystem::path(run.options.output) / run.options.name).string();
  return run;
}

std::vector<PointRun> resolve_all(const Sweep& sweep) {
  const std::vector<Point> points = list_points(sweep);
  std::vector<PointRun> runs;
  std::map<std::string, const Point*> known;
  Faults faults(sweep, points.size());
  for (const Point& point : points) {
    faults.note(point.index, point.label, [&] {
      PointRun run = resolve(sweep, point);
      const auto [twin, is_new] = known.emplace(content_of(run.options), &point);
      ABT_CHECK(
          is_new, Config, "the same configuration as point {} ({})", twin->second->index,
          twin->second->label);
      runs.push_back(std::move(run));
    });
  }
  faults.throw_any();
  return runs;
}

void check_runs(const Sweep& sweep, const std::vector<PointRun>& runs, bool here) {
  std::map<std::string, data::DatasetShape> shapes;
  Faults faults(sweep, runs.size());
  for (const PointRun& run : runs) {
    faults.note(run.index, run.label, [&] {
      check_place(run.folder);
      config::RunOptions options = run.options;
      const std::string data = to_yaml(data::fields_of(options.data));
      if (!shapes.contains(data)) {
        shapes[data] = data::dataset_shape(options.data);
      }
      const data::DatasetShape& set = shapes[data];
      config::check_run(options, set, set.train - options.data.validation);
      if (here) {
        config::check_memory(options, set, static_cast<int>(options.workers), 0);
      }
    });
  }
  faults.throw_any();
}

}  // namespace abtrain::sweep
