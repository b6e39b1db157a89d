// The files of a text, in a form that can be mapped.
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
  std::string mapped;     // what to map: the same file, or the unpacked one
  std::string name = {};  // below the folder, without a link's target; of a single file empty
};

// `path` itself, or all files below a folder, in the order of their paths and
// without files and folders whose names begin with a dot. Links are followed; of
// tokens other than bytes, only .bin files are taken. `account` gets what was
// skipped, and files that do not look like what `tokens` says. A gzip file (found by
// its first bytes) is unpacked once, to a file in the folder abtrain/text of
// $XDG_CACHE_HOME or ~/.cache whose name follows from the file's path, size and
// modification time. Throws MissingInput; DamagedData, naming a gzip file, or a
// text where tokens are expected; Io. `log` may be null.
std::vector<TextFile> text_files(
    const std::string& path, TokenType tokens, Log* log, Account& account);

// Files of a folder by their names: train.bin or wiki.train.txt is for training, and val.bin
// (valid, validation, dev, eval, or else test) is the test text. Where names do not say so, all are
// for training.
struct TextParts {
  std::vector<TextFile> train, test;
};
// `has_test`: there is another test text. Throws Config if only some names of files of tokens say
// which part they are.
TextParts parts_of(
    std::vector<TextFile> files, const std::string& folder, TokenType tokens, bool has_test,
    Account& account);

}  // namespace abtrain::data
