// Writes manual pages in roff, with the macros of man(7).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace abtrain::app {

class ManPage {
 public:
  ManPage(
      const std::string& name,
      int section,
      const std::string& source,
      const std::string& manual);

  ManPage& heading(const std::string& title);
  ManPage& subheading(const std::string& title);
  // One or more paragraphs, separated by empty lines. Words in `backquotes`
  // become bold.
  ManPage& text(const std::string& text);
  // A term, with its text indented below.
  ManPage& item(const std::string& term, const std::string& text);
  // Preformatted lines, none of which may be empty.
  ManPage& literal(const std::string& lines);
  const std::string& page() const {
    return page_;
  }

 private:
  void line(const std::string& line);
  void paragraph(const std::string& text);
  std::string page_;
  bool after_text_ = false;  // text since the last heading
};

// Marks words for `item` and `text`: bold, and italic for placeholders.
std::string bold(const std::string& text);
std::string italic(const std::string& text);

}  // namespace abtrain::app
