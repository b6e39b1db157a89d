#include "comm/control/secret.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/error.h"
#include "error_of.h"
#include "temp_folder.h"

namespace abtrain::comm {
namespace {

class SecretFromEnv : public ::testing::Test {
 protected:
  ~SecretFromEnv() override {
    unsetenv("ABTRAIN_SECRET");
    unsetenv("ABTRAIN_SECRET_FILE");
  }
  std::string secret_file(const std::string& text, mode_t mode = 0600) {
    const std::string path = folder_.add("secret", text);
    chmod(path.c_str(), mode);
    setenv("ABTRAIN_SECRET_FILE", path.c_str(), 1);
    return path;
  }
  static void expect_refused(
      const std::vector<std::string>& parts, ErrorKind kind = ErrorKind::Config) {
    expect_error([] { secret_from_env(); }, kind, parts);
  }
  TempFolder folder_;
};

TEST(Secret, AuthenticatesOneMessage) {
  const Secret one("a secret of some length");
  const Secret other("a secret of some lengtH");
  const Mac mac = one.mac_of("message");
  EXPECT_TRUE(one.matches("message", mac));
  EXPECT_TRUE(Secret("a secret of some length").matches("message", mac));
  EXPECT_FALSE(one.matches("messagE", mac));
  EXPECT_FALSE(one.matches("", mac));
  EXPECT_FALSE(other.matches("message", mac));
  Mac changed = mac;
  changed.back() ^= 1;
  EXPECT_FALSE(one.matches("message", changed));
  EXPECT_FALSE(one.matches("message", Mac{}));
}

TEST_F(SecretFromEnv, IsNoneWhereNothingIsSet) {
  EXPECT_FALSE(secret_from_env().is_set());
  EXPECT_EQ(secret_source(), "");
}

TEST_F(SecretFromEnv, IsTheSameFromBoth) {
  setenv("ABTRAIN_SECRET", "0123456789abcdef", 1);
  const Mac mac = secret_from_env().mac_of("x");
  EXPECT_EQ(secret_source(), "ABTRAIN_SECRET");
  unsetenv("ABTRAIN_SECRET");
  for (const char* text : {"0123456789abcdef", "0123456789abcdef\n"}) {
    secret_file(text);
    EXPECT_TRUE(secret_from_env().matches("x", mac));
    EXPECT_EQ(secret_source(), "ABTRAIN_SECRET_FILE");
  }
}

TEST_F(SecretFromEnv, IsRefusedWhereItIsNoSecret) {
  setenv("ABTRAIN_SECRET", "0123456789abcde", 1);
  expect_refused({"ABTRAIN_SECRET: expected a secret of 16 to 4096 bytes, got 15"});
  secret_file("0123456789abcdef");
  expect_refused({"are both set"});
  unsetenv("ABTRAIN_SECRET");
  secret_file("short\n");
  expect_refused({"expected a secret of 16 to 4096 bytes, got 5"});
  secret_file(std::string(5000, 'x'));
  expect_refused({});
}

TEST_F(SecretFromEnv, FilesOfOthersAreRefused) {
  for (const mode_t mode : {0640, 0604, 0620, 0602, 0666}) {
    const std::string path = secret_file("0123456789abcdef", mode);
    expect_refused({path + " is open to users other"});
  }
  secret_file("0123456789abcdef", 0400);
  EXPECT_TRUE(secret_from_env().is_set());
}

TEST_F(SecretFromEnv, WhatIsNoFileIsRefused) {
  setenv("ABTRAIN_SECRET_FILE", folder_.file("none").c_str(), 1);
  expect_refused({"No such file"}, ErrorKind::MissingInput);
  setenv("ABTRAIN_SECRET_FILE", "/dev/zero", 1);
  expect_refused({"/dev/zero is not a regular file"});
  const std::string fifo = folder_.file("fifo");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  setenv("ABTRAIN_SECRET_FILE", fifo.c_str(), 1);
  expect_refused({});
}

}  // namespace
}  // namespace abtrain::comm
