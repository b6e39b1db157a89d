// abtrain predict: what it prints, and what it refuses.
#include <gtest/gtest.h>
#include <turbojpeg.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "program.h"
#include "small_run.h"
#include "temp_folder.h"

namespace abtrain {
namespace {

class PredictCommand : public ::testing::Test {
 protected:
  PredictCommand() {
    expect_exit(0, small_run(folder_, "--set data.pool=7 --set evaluate.every=0"));
    for (const char* name : {"a.jpg", "b.jpg", "c,=d.jpg"}) {
      folder_.add(std::string("images/") + name, jpeg());
    }
  }
  static std::string jpeg() {
    const std::string pixels(3 * 28 * 28, 'x');
    const tjhandle handle = tjInitCompress();
    unsigned char* out = nullptr;
    unsigned long size = 0;
    tjCompress2(
        handle, reinterpret_cast<const unsigned char*>(pixels.data()), 28, 0, 28, TJPF_RGB, &out,
        &size, TJSAMP_444, 90, 0);
    std::string bytes(out, out + size);
    tjFree(out);
    tjDestroy(handle);
    return bytes;
  }
  std::string predict(const std::string& arguments) const {
    return output_of("predict " + arguments, here_);
  }

  const TempFolder folder_;
  const std::string here_ = "cd '" + folder_.path() + "' && ";
};

TEST_F(PredictCommand, PrintsItsFormats) {
  const std::string table = predict("small images");
  EXPECT_TRUE(table.starts_with("file             class")) << table;
  expect_has(table, "\nimages/a.jpg     ");
  expect_has(table, " %\nimages/c,=d.jpg  ");

  const std::string lines = predict("small images/b.jpg images/a.jpg --top 2 --json");
  const auto first = nlohmann::json::parse(lines.substr(0, lines.find('\n')));
  EXPECT_EQ(first["file"], "images/b.jpg");
  ASSERT_EQ(first["classes"].size(), 2U);
  EXPECT_GE(first["classes"][0]["probability"], first["classes"][1]["probability"]);
  const std::string name = first["classes"][0]["name"];

  const std::string csv = predict("small images --format csv");
  EXPECT_TRUE(csv.starts_with("file,class,probability\r\nimages/a.jpg," + name + ",0.")) << csv;
  expect_has(csv, "\"images/c,=d.jpg\"," + name);

  expect_exit(0, "export small -o small.safetensors", {}, here_);
  EXPECT_EQ(predict("small.safetensors images --format csv"), csv);
  expect_exit(78, "generate small.safetensors", {"small.safetensors: "}, here_);

  // By the ending, and never over something that is there.
  predict("small images -o out.csv");
  EXPECT_EQ(content(folder_.file("out.csv")), csv);
  expect_exit(2, "predict small images/a.jpg -o out.csv", {"already exists"}, here_);
  EXPECT_EQ(content(folder_.file("out.csv")), csv);
  predict("small images/a.jpg -o out.csv --force");
  EXPECT_NE(content(folder_.file("out.csv")), csv);
  expect_exit(2, "predict small images/a.jpg --force", {}, here_);
}

TEST_F(PredictCommand, NamesADamagedFileAndPredictsTheOthers) {
  folder_.add("images/b.jpg", jpeg().substr(0, 200));
  const Outcome outcome = run("predict small images --json", Stream::Out, here_);
  EXPECT_EQ(outcome.exit_code, 65);
  EXPECT_TRUE(contains(outcome.text, "images/a.jpg") && contains(outcome.text, "c,=d.jpg"));
  EXPECT_FALSE(contains(outcome.text, "images/b.jpg"));
  expect_exit(65, "predict small images", {"images/b.jpg: "}, here_);
  expect_exit(66, "predict small images/z.jpg", {}, here_);
  expect_exit(2, "predict small", {}, here_);
}

}  // namespace
}  // namespace abtrain
