// Pages of roff with the macros of man(7).
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
  // A paragraph, or more, with an empty line between them. Words in
  // `backquotes` become bold.
  ManPage& text(const std::string& text);
  // A term, its text indented below.
  ManPage& item(const std::string& term, const std::string& text);
  // Lines as they are, without empty ones among them.
  ManPage& literal(const std::string& lines);
  const std::string& page() const {
    return page_;
  }

 private:
  void line(const std::string& line);
  void paragraph(const std::string& text);
  std::string page_;
  bool after_text_ = false;  // since the last heading
};

// Marked for `item` and `text`: bold, and italic for what stands for a value.
std::string bold(const std::string& text);
std::string italic(const std::string& text);

}  // namespace abtrain::app
