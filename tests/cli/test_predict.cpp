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
    const Outcome trained =
        run(small_run(folder_, "--set data.pool=7 --set evaluate.every=0"), Stream::Error);
    EXPECT_EQ(trained.exit_code, 0) << trained.text;
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
  Outcome predict(const std::string& arguments, Stream stream = Stream::Out) const {
    return run("predict " + arguments, stream, "cd '" + folder_.path() + "' && ");
  }

  TempFolder folder_;
};

TEST_F(PredictCommand, PrintsItsFormats) {
  const std::string table = predict("small images").text;
  EXPECT_TRUE(table.starts_with("file             class")) << table;
  EXPECT_TRUE(contains(table, "\nimages/a.jpg     ")) << table;
  EXPECT_TRUE(contains(table, " %\nimages/c,=d.jpg  ")) << table;

  const std::string lines = predict("small images/b.jpg images/a.jpg --top 2 --json").text;
  const auto first = nlohmann::json::parse(lines.substr(0, lines.find('\n')));
  EXPECT_EQ(first["file"], "images/b.jpg");
  ASSERT_EQ(first["classes"].size(), 2U);
  EXPECT_GE(first["classes"][0]["probability"], first["classes"][1]["probability"]);
  const std::string name = first["classes"][0]["name"];

  const std::string csv = predict("small images --format csv").text;
  EXPECT_TRUE(csv.starts_with("file,class,probability\r\nimages/a.jpg," + name + ",0.")) << csv;
  EXPECT_TRUE(contains(csv, "\"images/c,=d.jpg\"," + name)) << csv;

  // By the ending, and never over something that is there.
  EXPECT_EQ(predict("small images -o out.csv").exit_code, 0);
  EXPECT_EQ(content(folder_.file("out.csv")), csv);
  const Outcome again = predict("small images/a.jpg -o out.csv", Stream::Error);
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_TRUE(contains(again.text, "already exists")) << again.text;
  EXPECT_EQ(content(folder_.file("out.csv")), csv);
  EXPECT_EQ(predict("small images/a.jpg -o out.csv --force").exit_code, 0);
  EXPECT_NE(content(folder_.file("out.csv")), csv);
  EXPECT_EQ(predict("small images/a.jpg --force").exit_code, 2);
}

TEST_F(PredictCommand, NamesADamagedFileAndPredictsTheOthers) {
  folder_.add("images/b.jpg", jpeg().substr(0, 200));
  const Outcome outcome = predict("small images --json");
  EXPECT_EQ(outcome.exit_code, 65);
  EXPECT_TRUE(contains(outcome.text, "images/a.jpg") && contains(outcome.text, "c,=d.jpg"));
  EXPECT_FALSE(contains(outcome.text, "images/b.jpg"));
  const Outcome said = predict("small images", Stream::Error);
  EXPECT_TRUE(contains(said.text, "images/b.jpg: ")) << said.text;
  EXPECT_EQ(predict("small images/z.jpg").exit_code, 66);
  EXPECT_EQ(predict("small").exit_code, 2);
}

}  // namespace
}  // namespace abtrain
