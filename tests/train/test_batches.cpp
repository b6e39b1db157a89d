#include "train/batches.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>

#include "config/check_run.h"
#include "error_of.h"
#include "nn/export_file.h"
#include "temp_folder.h"
#include "toy_run.h"

namespace abtrain::train {
namespace {

using testing::expect_same_bits;
using testing::toy_options;

// All workers' results; the images lie on the device, which is the CPU here.
std::vector<TrainResult> train_on_device(
    const config::RunOptions& options, const data::Dataset& dataset,
    const data::Examples& validation) {
  data::DeviceCopies copies(dataset, validation);
  TrainInputs inputs{options, dataset, validation, at::kCPU};
  inputs.device_copies = &copies;
  return train_threads(inputs);
}

TEST(Batches, OnTheDeviceTrainTheSameModelWithTheSameScores) {
  data::Dataset dataset = testing::toy_dataset(256, 3);
  const data::Examples validation = data::hold_out(dataset.train, 40, 5);
  config::RunOptions o = toy_options(2, 1);
  o.data.augment = data::AugmentName::Crop;
  o.data.pad = 1;
  o.data.erase = 0.3;
  o.train.accumulate = 2;
  o.evaluate.batch_size = 17;
  const auto host = testing::train_all(o, dataset);
  const auto device = train_on_device(o, dataset, validation);
  for (std::size_t w = 0; w < host.size(); ++w) {
    expect_same_bits(*host[w].model, *device[w].model);
    EXPECT_EQ(host[w].test.accuracy, device[w].test.accuracy);
    EXPECT_EQ(host[w].test.loss, device[w].test.loss);
  }
}

// On a GPU a run in bf16 makes its batches so: every family's first layer would
// cast the floats to the same values, and nothing else sees them.
TEST(Batches, InBf16AreWhatTheFirstLayerWouldCastThemTo) {
  for (const std::string& name : nn::model_names()) {
    if (name.starts_with("gpt") || name == "exported") {
      continue;  // they take no images, or are a file
    }
    nn::ModelOptions options;
    options.name = name;
    options.width = 0.125;
    options.hidden = {16};
    const auto model = nn::make_model(options, {3, 32, 32, 10});
    model->initialize(nn::InitName::Kaiming, 3);
    at::Generator generator = at::detail::createCPUGenerator(2);
    const at::Tensor images =
        at::randn({4, 3, 32, 32}, generator).contiguous(at::MemoryFormat::ChannelsLast);
    model->compute_in({at::kBFloat16, 0});
    const at::NoGradGuard no_grad;
    EXPECT_TRUE(
        at::equal(model->forward(images, false), model->forward(images.to(at::kBFloat16), false)))
        << name;
  }
}

TEST(Batches, LieOnADeviceOnlyWhereTheyCan) {
  const data::Dataset set = testing::toy_dataset(64);
  config::RunOptions o;
  for (const std::optional<bool> wanted : {std::optional<bool>(), {false}}) {
    o.data.on_device = wanted;
    EXPECT_FALSE(lies_on_device(o, set, {}, at::kCPU));
  }
  o.data.on_device = true;
  const auto expect_refused = [&](const data::Dataset& images, const at::Device& device,
                                  const std::string& part) {
    expect_error(
        [&] { lies_on_device(o, images, {}, device); }, ErrorKind::Config,
        {"data.on_device: ", part});
  };
  expect_refused(set, at::kCPU, "computes on cpu");
  const at::Device gpu(at::kCUDA, 0);
  EXPECT_TRUE(lies_on_device(o, set, {}, gpu));
  data::Dataset files = set;
  files.train = files.test = data::ListedImages{};
  expect_refused(files, gpu, "are made by the host");
}

TEST(Batches, ImagesCountAsMemoryOfTheDevice) {
  config::RunOptions o = toy_options(1, 1);
  o.device = device::DeviceChoice::Cpu;
  const data::ExampleShape shape{1, 8, 8, 4};
  EXPECT_NO_THROW(config::check_memory(o, shape, 1, 1000));
  expect_error(
      [&] { config::check_memory(o, shape, 1, std::int64_t{1} << 60); }, ErrorKind::Config,
      {"of images", "not one fits"});
}

TEST(Batches, OneResultOfAnExportedModelCountsAsMemory) {
  const TempFolder folder;
  config::RunOptions o = toy_options(1, 1);
  o.device = device::DeviceChoice::Cpu;
  o.data.batch_size = 4;
  o.model.name = "exported";
  o.model.file = folder.file("model.pt2");
  const data::ExampleShape shape{1, 2, 3, 4};
  testing::small_export_declaring(5).write(*o.model.file);
  EXPECT_NO_THROW(config::check_memory(o, shape, 1, 0));
  testing::small_export_declaring(std::int64_t{1} << 58).write(*o.model.file);
  expect_error(
      [&] { config::check_memory(o, shape, 1, 0); }, ErrorKind::Config,
      {"data.batch_size: one operator of ", "model.pt2", "for 4 examples"});
}

}  // namespace
}  // namespace abtrain::train
