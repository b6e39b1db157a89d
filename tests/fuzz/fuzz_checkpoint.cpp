// The manifest of a checkpoint, or after an 'S' the file of a worker, whose
// size and hash are made right, or after an 'X' two bytes: which of its files
// is replaced, and by what that is no file.
#include <array>
#include <filesystem>

#include "run_folder/checkpoint.h"
#include "run_folder/damaged_checkpoint.h"
#include "special_file.h"
#include "target.h"
#include "temp_folder.h"

namespace abtrain::fuzz {

const std::vector<std::string> kWords = {
    "\"format\": 1",
    "\"step\": ",
    "\"run_steps\": ",
    "\"workers\": ",
    "\"leads\": [",
    "\"validation_accuracy\": ",
    "\"metrics_bytes\": ",
    "\"files\": {",
    "\"config.yaml\": ",
    "\"worker-00000.safetensors\": ",
    "\"bytes\": ",
    "\"xxh3\": \"",
    "[",
    "]",
    "{",
    "}",
    ",",
    "null",
    "0",
    "-1",
    "0.5",
    "1e999",
    "\"../\"",
    "\"state\":\"",
    "\"__metadata__\":",
    "\\\""};

namespace {

// Of one worker, after step 3 of 7.
std::string make_checkpoint(const TempFolder& folder) {
  const std::string place = folder.file("checkpoint");
  folder.add("checkpoint/config.yaml", "workers: 1\n");
  folder.add(
      "checkpoint/manifest.json",
      R"({"format": 2, "step": 3, "run_steps": 7, "workers": 1, "leads": [0],
          "validation_accuracy": null, "metrics_bytes": 5, "files": {}})");
  state::write_safetensors(
      place + "/" + run_folder::worker_file(0), {},
      {{"state", "{}"}, {"step", "3"}, {"worker", "0"}});
  run_folder::mend_mark(place, config::kConfig);
  run_folder::mend_mark(place, run_folder::worker_file(0));
  return place;
}

}  // namespace

void read_input(std::string_view text) {
  static const TempFolder folder;
  static const std::string place = make_checkpoint(folder);
  static const std::string manifest = read_file(place + "/manifest.json");
  static const std::string worker = read_file(place + "/" + run_folder::worker_file(0));
  const auto refused = [&] {
    refusing({ErrorKind::DamagedData}, [&] {
      const run_folder::Checkpoint checkpoint = run_folder::read_checkpoint(place);
      run_folder::verify(checkpoint);
      run_folder::load_state(checkpoint, 0);
    });
  };
  if (text.size() == 3 && text.starts_with('X')) {
    const std::array names = {
        std::string(config::kManifest), std::string(config::kConfig), run_folder::worker_file(0)};
    const std::string path = place + "/" + names[static_cast<std::uint8_t>(text[1]) % names.size()];
    const std::string before = read_file(path);
    make_special(path, kSpecials[static_cast<std::uint8_t>(text[2]) % kSpecials.size()]);
    refused();
    std::filesystem::remove_all(path);
    write_file(path, before);
    return;
  }
  const bool is_state = text.starts_with('S');
  write_file(place + "/manifest.json", is_state ? manifest : text);
  write_file(place + "/" + run_folder::worker_file(0), is_state ? text.substr(1) : worker);
  if (is_state) {
    run_folder::mend_mark(place, run_folder::worker_file(0));
  }
  refused();
}

}  // namespace abtrain::fuzz
