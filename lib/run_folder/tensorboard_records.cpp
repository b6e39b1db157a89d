#include "run_folder/tensorboard_records.h"

#include <cmath>

#include "base/json.h"
#include "base/options_apply.h"
#include "base/scalars.h"
#include "base/text.h"
#include "config/config.h"
#include "run_folder/tensorboard_wire.h"

namespace abtrain::run_folder {

namespace {

using nlohmann::ordered_json;

// With field numbers: Event {1 wall_time, 2 step, 3 file_version, 5 summary, 7 session_log}
Message event_at(double wall_time, std::int64_t step) {
  return Message().real(1, wall_time).integer(2, step);
}

// Summary {1 value {1 tag, 2 simple_value, 8 tensor, 9 metadata}}
Message tagged(const std::string& tag) {
  return Message().bytes(1, tag);
}

// The message that the hparams plugin reads: HParamsPluginData {1 version, 3 session_start_info, 4
// session_end_info} in SummaryMetadata {1 plugin_data {1 plugin_name, 2 content}, 4 data_class},
// beside a TensorProto {1 dtype, 2 tensor_shape {2 dim {1 size}}} without elements.
Message hparams(const char* tag, int field, const Message& info) {
  constexpr int kFloat = 1;
  constexpr int kTensor = 2;
  const Message no_elements = Message().message(2, Message().integer(1, 0));
  const Message content = Message().integer(1, 0).message(field, info);
  const Message plugin = Message().bytes(1, "hparams").message(2, content);
  return tagged(tag)
      .message(8, Message().integer(1, kFloat).message(2, no_elements))
      .message(9, Message().message(1, plugin).integer(4, kTensor));
}

// google.protobuf.Value {2 number_value, 3 string_value, 4 bool_value}
Message value_of(const std::string& text) {
  double number = 0;
  std::string why;
  if (text == "true" || text == "false") {
    return Message().integer(4, text == "true" ? 1 : 0);
  }
  if (parse_number(text, number, why)) {
    return Message().real(2, number);
  }
  return Message().bytes(3, text);
}

// SessionStartInfo {1 hparams, 5 start_time_secs}. No Experiment message is written, so TensorBoard
// finds out by itself which keys differ among its runs.
Message session_start(const config::RunOptions& options, std::int64_t start) {
  Message info;
  config::RunOptions copy = options;
  const Fields fields = config::fields_of(copy);
  each_key(in_use(fields.list()), [&](const std::string& key, const Field& field) {
    if (key != "name" && key != "output" && key != "train.tensorboard") {
      info.message(1, Message().bytes(1, key).message(2, value_of(field.print())));
    }
  });
  info.real(5, static_cast<double>(start));
  return hparams("_hparams_/session_start_info", 3, info);
}

// SessionEndInfo {1 status, 2 end_time_secs}
Message session_end(double wall_time) {
  constexpr int kSuccess = 1;
  return hparams(
      "_hparams_/session_end_info", 4, Message().integer(1, kSuccess).real(2, wall_time));
}

}  // namespace

std::vector<std::pair<std::string, double>> scalars_of(const ordered_json& event) {
  const std::string name = value_in<std::string>(event, "event");
  std::vector<std::pair<std::string, double>> scalars;
  const auto add = [&](const std::string& tag, const ordered_json& value) {
    if (value.is_number() && std::isfinite(value.get<double>())) {
      scalars.emplace_back(tag, value.get<double>());
    }
  };
  for (const auto& [key, value] : event.items()) {
    if (key == "step" || key == "seconds") {
      continue;
    }
    const std::string tag = formatted("{}/{}", name, key);
    add(tag, value);
    if (value.is_array()) {
      for (std::size_t i = 0; i < value.size(); ++i) {
        add(formatted("{}/{}", tag, i), value[i]);
      }
    }
  }
  for (const ordered_json& layer : value_in<std::vector<ordered_json>>(event, "layers")) {
    for (const char* key : {"rank", "energy"}) {
      if (const auto found = layer.find(key); found != layer.end()) {
        add(formatted("{}/{}", key, value_in<std::string>(layer, "name")), *found);
      }
    }
  }
  return scalars;
}

std::string tensorboard_head(const config::RunOptions& options, std::int64_t start) {
  const auto time = static_cast<double>(start);
  constexpr int kStart = 1;
  const Message summary = Message().message(1, session_start(options, start));
  // The second record makes TensorBoard discard what it has read from an earlier file of the run.
  return tfrecord(event_at(time, 0).bytes(3, "brain.Event:2").bytes()) +
         tfrecord(event_at(time, 0).message(7, Message().integer(1, kStart)).bytes()) +
         tfrecord(event_at(time, 0).message(5, summary).bytes());
}

std::string tensorboard_record(const ordered_json& event, std::int64_t start) {
  const double wall_time = static_cast<double>(start) + value_in<double>(event, "seconds");
  Message summary;
  for (const auto& [tag, value] : scalars_of(event)) {
    summary.message(1, tagged(tag).real32(2, static_cast<float>(value)));
  }
  if (const auto final = event.find("final"); final != event.end() && *final == true) {
    summary.message(1, session_end(wall_time));
  }
  if (summary.bytes().empty()) {
    return {};
  }
  const auto step = value_in<std::int64_t>(event, "step");
  return tfrecord(event_at(wall_time, step).message(5, summary).bytes());
}

}  // namespace abtrain::run_folder
