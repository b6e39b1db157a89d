// Finds the files of a text, and unpacks gzip files so that they can be mapped.
#pragma once

#include <string>
#include <vector>

#include "data/account.h"
#include "data/data_options.h"

namespace abtrain {
class Log;
}

namespace abtrain::data {

struct TextFile {
  std::string path;       // for messages
  std::string mapped;     // the file to map: `path`, or its unpacked copy
  std::string name = {};  // path below the folder, links unresolved; empty for a single file
};

// Returns `path` itself, or all files below it in the order of their paths, except hidden ones
// (with a dot first). Links are followed. For tokens other than bytes, only .bin files are taken.
// `account` gets the skipped files and, if tokens are bytes, files that have zero bytes at their
// beginning. A gzip file (recognized by its first bytes) is unpacked once, to a file in the folder
// abtrain/text of $XDG_CACHE_HOME or ~/.cache; the name follows from the file's path, size and
// modification time. Throws MissingInput; DamagedData, which names the file, for a broken gzip
// file, or a text where `tokens` are integers; Io. `log` may be null.
std::vector<TextFile> text_files(
    const std::string& path, TokenType tokens, Log* log, Account& account);

// The parts of a text, found by words in the names of a folder's files. `train` or `training` marks
// training files (train.bin, wiki.train.txt). `val`, `valid`, `validation`, `dev` or `eval` marks
// the test text; if no file has these words, `test` does. If the names do not mark both parts, or
// leave a file unmarked, all files are for training.
struct TextParts {
  std::vector<TextFile> train, test;
};
// `has_test`: data.test names the test text. For files of tokens, throws Config if only some of
// their names say which part they are.
TextParts parts_of(
    std::vector<TextFile> files, const std::string& folder, TokenType tokens, bool has_test,
    Account& account);

}  // namespace abtrain::data
