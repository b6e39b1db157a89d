#include "roff.h"

#include "base/text.h"

namespace abtrain::app {

namespace {

// Mark font changes until the text is escaped; no help text contains them.
constexpr char kBold = '\x01';
constexpr char kItalic = '\x02';
constexpr char kRoman = '\x03';

// Escapes what roff would interpret. Dashes, quotes and accents stay ASCII, so
// that commands can be copied from the page.
std::string escaped(const std::string& text) {
  std::string out;
  bool code = false;
  for (const char c : text) {
    switch (c) {
      case '\\':
        out += "\\e";
        break;
      case '-':
        out += "\\-";
        break;
      case '\'':
        out += "\\(aq";
        break;
      case '^':
        out += "\\(ha";
        break;
      case '~':
        out += "\\(ti";
        break;
      case '`':
        code = !code;
        out += code ? "\\fB" : "\\fR";
        break;
      case kBold:
        out += "\\fB";
        break;
      case kItalic:
        out += "\\fI";
        break;
      case kRoman:
        out += "\\fR";
        break;
      default:
        out += c;
    }
  }
  // A leading dot would begin a roff request.
  return out.starts_with('.') ? "\\&" + out : out;
}

std::string trimmed_end(const std::string& text) {
  return text.substr(0, text.find_last_not_of(" \n") + 1);
}

}  // namespace

std::string bold(const std::string& text) {
  return kBold + text + kRoman;
}

std::string italic(const std::string& text) {
  return kItalic + text + kRoman;
}

ManPage::ManPage(
    const std::string& name,
    int section,
    const std::string& source,
    const std::string& manual) {
  line(str(
      ".TH ", name, " ", section, " \"\" \"", source, "\" \"", manual, "\""));
  line(".nh");  // no hyphenation: words may be commands
}

void ManPage::line(const std::string& line) {
  page_ += line + "\n";
}

ManPage& ManPage::heading(const std::string& title) {
  line(".SH " + escaped(title));
  after_text_ = false;
  return *this;
}

ManPage& ManPage::subheading(const std::string& title) {
  line(".SS " + escaped(title));
  after_text_ = false;
  return *this;
}

void ManPage::paragraph(const std::string& text) {
  constexpr std::size_t kWidth = 76;
  std::string current;
  const auto flush = [&] {
    if (!current.empty()) {
      line(escaped(current));
    }
    current.clear();
  };
  bool quoted = false;  // inside backquotes: keep on one source line
  for (const std::string& word : split_text(text, ' ')) {
    if (!current.empty() && !quoted && current.size() + word.size() > kWidth) {
      flush();
    }
    for (const char c : word) {
      quoted = c == '`' ? !quoted : quoted;
    }
    current += (current.empty() ? "" : " ") + word;
  }
  flush();
}

ManPage& ManPage::text(const std::string& text) {
  std::string words;
  const auto flush = [&] {
    if (words.empty()) {
      return;
    }
    // Directly below a heading, no new paragraph is needed.
    if (after_text_) {
      line(".PP");
    }
    after_text_ = true;
    paragraph(words);
    words.clear();
  };
  for (const std::string& part : split_text(text, '\n')) {
    if (part.empty()) {
      flush();
    } else {
      words += (words.empty() ? "" : " ") + part;
    }
  }
  flush();
  return *this;
}

ManPage& ManPage::item(const std::string& term, const std::string& text) {
  line(".TP");
  line(escaped(term));
  paragraph(text);
  after_text_ = true;
  return *this;
}

ManPage& ManPage::literal(const std::string& lines) {
  line(".nf");
  for (const std::string& part : split_text(trimmed_end(lines), '\n')) {
    line(escaped(part));
  }
  line(".fi");
  after_text_ = true;
  return *this;
}

}  // namespace abtrain::app
