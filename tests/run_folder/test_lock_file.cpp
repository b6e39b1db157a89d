// Lock files by themselves; who holds a folder is tested in test_run_lock.cpp.
#include "run_folder/lock_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <vector>

#include "base/files.h"
#include "error_of.h"
#include "process_end.h"
#include "temp_folder.h"

namespace abtrain::run_folder {
namespace {

namespace fs = std::filesystem;

TEST(LockHolder, LivesAsLongAsItsProcess) {
  const LockHolder me = this_process();
  EXPECT_EQ(me.pid, ::getpid());
  EXPECT_TRUE(is_alive(me));
  // Another process had this number before.
  LockHolder earlier = me;
  earlier.ticks = "1";
  EXPECT_FALSE(is_alive(earlier));
  // Without a start time the number must do.
  earlier.ticks = "";
  EXPECT_TRUE(is_alive(earlier));
  LockHolder dead = me;
  dead.pid = pid_of_the_dead();
  EXPECT_FALSE(is_alive(dead));
}

TEST(LockHolder, HasAnIdThatIsNeverUsedTwice) {
  const LockHolder me = this_process();
  const LockHolder again = this_process();
  EXPECT_NE(me.id, again.id);
  EXPECT_EQ(me.pid, again.pid);
  EXPECT_EQ(me.machine, again.machine);
}

TEST(LockFile, IsReadAsItWasCreated) {
  const TempFolder folder;
  const std::string path = lock_in(folder.path());
  EXPECT_FALSE(read_lock(path));
  const LockHolder me = this_process();
  EXPECT_TRUE(create_lock(path, me));
  const auto found = read_lock(path);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->path, path);
  EXPECT_EQ(found->text, read_file(path));
  EXPECT_EQ(found->holder.id, me.id);
  EXPECT_EQ(found->holder.host, me.host);
  EXPECT_EQ(found->holder.machine, me.machine);
  EXPECT_EQ(found->holder.pid, me.pid);
  EXPECT_EQ(found->holder.ticks, me.ticks);
  EXPECT_EQ(found->holder.started, me.started);
  EXPECT_EQ(name_of(found->holder), formatted("process {} on {}", me.pid, me.host));
}

TEST(LockFile, IsCreatedByOneOnly) {
  const TempFolder folder;
  const std::string path = lock_in(folder.path());
  const LockHolder me = this_process();
  EXPECT_TRUE(create_lock(path, me));
  EXPECT_FALSE(create_lock(path, this_process()));
  EXPECT_EQ(read_lock(path)->holder.id, me.id);
  EXPECT_FALSE(create_lock(lock_in(folder / "nowhere"), me));
  // No temporary file is left.
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
}

TEST(LockFile, ThatNamesNoProcessHasAnId) {
  const TempFolder folder;
  const std::string path = lock_in(folder.path());
  for (const std::string text :
       {"", "{\"id\": \"12", "{}", R"({"id": "12", "pid": 0})", R"({"id": "../12", "pid": 7})"}) {
    folder.add("lock.json", text);
    const auto found = read_lock(path);
    ASSERT_TRUE(found);
    EXPECT_TRUE(found->holder.id.starts_with("inode")) << text;
    EXPECT_EQ(found->holder.pid, 0) << text;
    EXPECT_EQ(name_of(found->holder), "an unidentified process");
  }
}

TEST(LockFile, ThatCannotBeReadIsAnError) {
  const TempFolder folder;
  expect_error([&] { read_lock(folder.path()); }, ErrorKind::Io, {folder.path()});
}

TEST(LockFile, ThatIsAPipeIsRefusedAtOnce) {
  const TempFolder folder;
  const std::string path = lock_in(folder.path());
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  for (const auto& read : std::vector<std::function<void()>>{
           [&] { read_lock(path); }, [&] { beat_lock(path, this_process(), 1); }}) {
    expect_error(read, ErrorKind::Io, {"'" + path + "': expected a file"});
  }
}

TEST(FindHolder, FollowsTheChainOfTakeovers) {
  const TempFolder folder;
  EXPECT_FALSE(find_holder(folder.path()));
  const LockHolder first = this_process();
  const LockHolder second = this_process();
  const LockHolder third = this_process();
  create_lock(lock_in(folder.path()), first);
  EXPECT_EQ(find_holder(folder.path())->holder.id, first.id);
  create_lock(claim_on(folder.path(), first), second);
  create_lock(claim_on(folder.path(), second), third);
  EXPECT_EQ(find_holder(folder.path())->holder.id, third.id);
  EXPECT_EQ(find_holder(folder.path())->path, claim_on(folder.path(), second));
}

TEST(BeatLock, ChangesTheTextOfItsOwnFile) {
  const TempFolder folder;
  const std::string path = lock_in(folder.path());
  const LockHolder me = this_process();
  EXPECT_FALSE(beat_lock(path, me, 1));
  EXPECT_FALSE(fs::exists(path));
  create_lock(path, me);
  const std::string before = read_file(path);
  EXPECT_EQ(beat_lock(path, me, 5)->text, before);
  const std::string after = read_file(path);
  EXPECT_NE(after, before);
  EXPECT_EQ(after.size(), before.size());
  // That of another one is read only.
  EXPECT_EQ(beat_lock(path, this_process(), 6)->holder.id, me.id);
  EXPECT_EQ(read_file(path), after);
}

}  // namespace
}  // namespace abtrain::run_folder
