// Boxes and pixels beside torchvision's on Pillow images, where the Python of
// LibTorch's environment has it.
#include <sys/wait.h>

#include <cstdlib>
#include <sstream>

#include "base/files.h"
#include "data/image_folder_files.h"
#include "data/images/image_reader.h"
#include "lacks.h"

namespace abtrain::data {
namespace {

constexpr std::int64_t kSide = 64, kResize = 72;
constexpr std::int64_t kNumel = 3 * kSide * kSide;

struct Gap {
  int worst = 0;
  std::int64_t other = 0;  // values that differ at all
};

Gap gap(const std::vector<float>& ours, std::string_view theirs) {
  Gap gap;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const int d = std::abs(static_cast<int>(ours[i]) - static_cast<std::uint8_t>(theirs[i]));
    gap.worst = std::max(gap.worst, d);
    gap.other += d != 0;
  }
  return gap;
}

TEST(Torchvision, SameBoxesAndSamePixels) {
  const TempFolder folder;
  struct Example {
    std::int64_t width, height;
    Bytes jpeg;
    std::uint32_t stream;
  };
  std::vector<Example> examples;
  std::string list;
  const auto add = [&](const Rgb& image, int subsampling) {
    const auto i = static_cast<std::uint32_t>(examples.size());
    const std::string path = folder / formatted("{}.jpg", i);
    examples.push_back({image.width, image.height, jpeg_of(image, subsampling), i});
    write_file(path, examples.back().jpeg);
    list += path;
    // Each word begins a block of four, as Random hands them out.
    Random random(9, RandomPurpose::Test, i);
    for (int word = 0; word < 40; ++word) {
      list += formatted(" {}", random.next());
    }
    list += "\n";
  };
  for (const auto& [width, height] :
       {std::pair(32, 32), std::pair(33, 31), std::pair(90, 61), std::pair(72, 72),
        std::pair(61, 107), std::pair(125, 119), std::pair(20, 110), std::pair(500, 120),
        std::pair(3, 1)}) {
    for (const int subsampling : {TJSAMP_444, TJSAMP_422, TJSAMP_420, TJSAMP_GRAY}) {
      add(smooth(width, height, 0.01 * width), subsampling);
      add(noise(width, height, static_cast<std::uint32_t>(width)), subsampling);
    }
  }
  folder.add("list", list);
  const std::string command = formatted(
      "'{}' '{}/tests/data/torchvision_reference.py' '{}' {} {} >'{}' 2>&1", ABTRAIN_PYTHON,
      ABTRAIN_SOURCE_DIR, folder.path(), kResize, kSide, folder / "reason");
  const int status = std::system(command.c_str());
  const std::string said = read_file(folder / "reason");
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (code == 77 || code == 127) {
    ABT_LACKS("torchvision: " + said);
  }
  ASSERT_EQ(code, 0) << said;

  std::istringstream boxes(read_file(folder / "boxes"));
  const std::string crops = read_file(folder / "crops");
  const std::string centers = read_file(folder / "centers");
  ASSERT_EQ(crops.size(), examples.size() * kNumel);
  ASSERT_EQ(centers.size(), examples.size() * kNumel);
  ImageReader reader({kSide, kResize, {1, 1, 1}, {0, 0, 0}});
  std::int64_t other = 0;
  for (std::size_t i = 0; i < examples.size(); ++i) {
    const Example& e = examples[i];
    SCOPED_TRACE(formatted("image {}, {} x {}", i, e.width, e.height));
    Random random(9, RandomPurpose::Test, e.stream);
    const Box box = draw_crop(random, e.height, e.width, 0.08, 1);
    Box wanted;
    boxes >> wanted.top >> wanted.left >> wanted.height >> wanted.width;
    EXPECT_EQ(box.top, wanted.top);
    EXPECT_EQ(box.left, wanted.left);
    EXPECT_EQ(box.height, wanted.height);
    EXPECT_EQ(box.width, wanted.width);

    reader.bytes() = e.jpeg;
    reader.open();
    std::vector<float> out(kNumel);
    reader.write_center(false, out.data());
    Gap found = gap(out, std::string_view(centers).substr(i * kNumel, kNumel));
    EXPECT_LE(found.worst, 1);
    other += found.other;
    reader.write_box(box, false, out.data());
    found = gap(out, std::string_view(crops).substr(i * kNumel, kNumel));
    EXPECT_LE(found.worst, 1);
    // Pillow 13 rounds in another order where one side grows, one shrinks.
    other += box.width < kSide && box.height > kSide ? 0 : found.other;
  }
  // Otherwise it is the same arithmetic; another libjpeg may differ a little.
  EXPECT_LE(other, static_cast<std::int64_t>(examples.size()) * kNumel / 1000);
}

}  // namespace
}  // namespace abtrain::data
