#include "base/options_apply.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "base/mapped.h"
#include "base/text.h"

namespace abtrain {
namespace {

using Kind = Value::Kind;

std::string full_name(const std::string& prefix, const std::string& key) {
  return prefix.empty() ? key : prefix + "." + key;
}

// A value that the field accepts: the one it holds now.
std::string example(const Field& field) {
  return field.is_section() ? "..." : field.print();
}

class Applier {
 public:
  Applier(
      const Fields& all, ReadResult& reading, const FindInstead& find,
      const std::map<std::string, Owner>& unowned)
      : all_(keys_of(all)), reading_(reading), find_(find), unowned_(unowned) {}

  void section(const std::vector<Field>& fields, const Value& section, const std::string& prefix) {
    std::map<std::string_view, const Entry*> seen;
    for (const Entry& entry : section.entries) {
      const std::string name = full_name(prefix, entry.key);
      const auto [earlier, is_new] = seen.try_emplace(entry.key, &entry);
      if (!is_new) {
        const Location& place = earlier->second->place;
        problem(
            entry.place, name, formatted("given twice, first at {}:{}", place.line, place.column));
        continue;
      }
      const auto field = std::ranges::find(fields, entry.key, &Field::key);
      if (field == fields.end()) {
        unknown(entry, fields, prefix);
      } else {
        value(*field, entry, name);
      }
    }
  }

 private:
  void value(const Field& field, const Entry& entry, const std::string& name) {
    if (field.is_section() && entry.value.kind == Kind::Section) {
      section(field.section, entry.value, name);
      return;
    }
    ReadResult::Setting setting{entry.place, order()};
    const auto complain = [&](const Value& where, std::string message) {
      setting.bad = true;
      // A value that was left out has no place of its own.
      const bool empty = where.kind == Kind::Nothing;
      problem(empty ? entry.place : where.place, name, std::move(message));
    };
    if (unowned_.contains(name)) {
      reading_.unowned.push_back({name, setting});
      return;
    }
    if (entry.value.kind == Kind::Invalid) {
      setting.bad = true;
    } else if (!field.is_section()) {
      field.read(entry.value, complain);
    } else {
      const Field& first = field.section.front();
      const bool is_name = entry.value.kind == Kind::Scalar && first.key == "name";
      complain(
          entry.value,
          formatted(
              "expected a section, as in '{}: {{{}: {}}}', got {}", entry.key, first.key,
              is_name ? entry.value.text : example(first), describe(entry.value)));
    }
    reading_.settings[name] = setting;
  }

  void unknown(const Entry& entry, const std::vector<Field>& fields, const std::string& prefix) {
    const std::string name = full_name(prefix, entry.key);
    const std::optional<Instead> instead = find_ ? find_(name) : std::nullopt;
    if (instead && (instead->harmless == "*" ||
                    (!instead->harmless.empty() && entry.value.text == instead->harmless))) {
      return;
    }
    const std::string meant = instead ? instead->key : similar(entry.key, fields, prefix);
    if (!meant.empty()) {
      // Marks the key as bad: its intended value is unknown, so checks that involve several keys
      // must not use its default.
      reading_.settings[meant] = {entry.place, order(), true};
    }
    problem(
        entry.place, name,
        entry.key.find(':') != std::string::npos ? "unknown key (put a space after the ':')"
        : instead                                ? "unknown key, " + advice(*instead)
        : meant.empty()                          ? "unknown key"
        : meant == name
            ? "a file has sections; write '" + replaced(name, ".", ": {") + ": ..." +
                  std::string(static_cast<std::size_t>(std::ranges::count(name, '.')), '}') + "'"
            : formatted("unknown key, did you mean '{}'?", meant));
  }

  // Returns the same key in another section, or else the most similar key in this section.
  std::string similar(
      const std::string& key, const std::vector<Field>& fields, const std::string& prefix) const {
    std::string meant;
    for (const std::string& name : all_) {
      if ((name == key || name.ends_with("." + key)) &&
          (meant.empty() || name.size() < meant.size())) {
        meant = name;
      }
    }
    if (!meant.empty()) {
      return meant;
    }
    const std::string near = nearest(key, mapped(fields, &Field::key));
    return near.empty() ? "" : full_name(prefix, near);
  }

  void problem(const Location& place, const std::string& key, std::string message) {
    reading_.problems.push_back({place, key, std::move(message)});
  }
  int order() {
    return ++reading_.last_order;
  }

  std::vector<std::string> all_;
  ReadResult& reading_;
  const FindInstead& find_;
  const std::map<std::string, Owner>& unowned_;
};

const Field& field_named(const std::vector<Field>& fields, const std::string& key) {
  return *std::ranges::find(fields, key, &Field::key);
}

bool is_in_use(const Field& field, const std::vector<Field>& section) {
  return field.owners.empty() ||
         std::ranges::count(field.owners, field_named(section, field.decided_by).print()) > 0;
}

void find_unowned(
    const std::vector<Field>& fields, const std::string& prefix, const Owner& outer,
    std::map<std::string, Owner>& found) {
  for (const Field& field : fields) {
    const std::string name = full_name(prefix, field.key);
    Owner owner = outer;
    if (owner.message.empty() && !is_in_use(field, fields)) {
      owner.decided_by = full_name(prefix, field.decided_by);
      owner.message = formatted(
          "belongs to {}, but {} is {}", listed(field.owners), owner.decided_by,
          field_named(fields, field.decided_by).print());
    }
    if (field.is_section()) {
      find_unowned(field.section, name, owner, found);
    } else if (!owner.message.empty()) {
      found.emplace(name, owner);
    }
  }
}

void print(const std::vector<Field>& fields, int indent, std::string& out) {
  for (const Field& field : fields) {
    const std::string value = field.is_section() ? "" : " " + field.print();
    out += formatted("{}{}:{}\n", std::string(indent, ' '), field.key, value);
    print(field.section, indent + 2, out);
  }
}

}  // namespace

std::string advice(const Instead& instead) {
  return instead.key.empty()
             ? "abtrain has none; " + instead.remark
             : formatted(
                   "use '{}'{}", instead.key,
                   instead.remark.empty() ? "" : formatted(" ({})", instead.remark));
}

std::map<std::string, Owner> unowned_keys(const Fields& fields) {
  std::map<std::string, Owner> found;
  find_unowned(fields.list(), "", {}, found);
  return found;
}

std::vector<Field> in_use(const std::vector<Field>& fields) {
  std::vector<Field> used;
  for (const Field& field : fields) {
    if (is_in_use(field, fields)) {
      used.push_back(field);
      used.back().section = in_use(field.section);
    }
  }
  return used;
}

void apply(
    const Fields& fields, const Value& section, ReadResult& reading, const FindInstead& find,
    const std::map<std::string, Owner>& unowned) {
  Applier(fields, reading, find, unowned).section(fields.list(), section, "");
}

std::string to_yaml(const Fields& fields) {
  std::string out;
  print(in_use(fields.list()), 0, out);
  return out;
}

void each_key(
    const std::vector<Field>& fields,
    const std::function<void(const std::string& name, const Field&)>& visit,
    const std::string& prefix) {
  for (const Field& field : fields) {
    const std::string name = full_name(prefix, field.key);
    if (field.is_section()) {
      each_key(field.section, visit, name);
    } else {
      visit(name, field);
    }
  }
}

std::vector<std::string> keys_of(const Fields& fields) {
  std::vector<std::string> out;
  each_key(fields.list(), [&](const std::string& name, const Field&) { out.push_back(name); });
  return out;
}

}  // namespace abtrain
