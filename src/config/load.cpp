#include "tandem/config/load.hpp"

#include "config/checks.hpp"
#include "config/read_value.hpp"
#include "tandem/config/schema.hpp"
#include "tandem/core/json.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <sys/stat.h>

namespace tandem::config {
namespace {

constexpr JsonLimits kLimits{.max_bytes = 1024 * 1024, .max_depth = 16};

// Comments become spaces, so that "a comma before }" is seen even where a comment stands between the two.
std::string without_comments(std::string_view text) {
  std::string out(text);
  bool in_string = false;
  for (std::size_t i = 0; i + 1 < out.size(); ++i) {
    if (in_string) {
      if (out[i] == '\\')
        ++i;
      else if (out[i] == '"' || out[i] == '\n')
        in_string = false;
    } else if (out[i] == '"') {
      in_string = true;
    } else if (out[i] == '/' && (out[i + 1] == '/' || out[i + 1] == '*')) {
      const bool line = out[i + 1] == '/';
      std::size_t end = out.find(line ? "\n" : "*/", i + 2);
      if (end == std::string::npos && !line) return out;  // an open comment: the parser says so
      end = end == std::string::npos ? out.size() : line ? end : end + 2;
      for (; i < end; ++i) {
        if (out[i] != '\n') out[i] = ' ';
      }
      --i;
    }
  }
  return out;
}

std::string join(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

class Reader {
 public:
  Reader(const JsonLines& lines, const std::string& base_dir) : lines_(lines), base_dir_(base_dir) {}

  void read(const Json& root) {
    start_sections(root);
    set_defaults();
    read_object(root, "");
    require(root);
    if (!errors_.empty()) return;
    for (Conflict& conflict : conflicts(config_)) fault(conflict.path, std::move(conflict.message));
  }

  [[nodiscard]] std::variant<Config, ConfigError> take() {
    if (errors_.empty()) return std::move(config_);
    // The first in the file is what an editor shows first; faults without a line come last.
    const auto first = std::min_element(errors_.begin(), errors_.end(), [](const ConfigError& a, const ConfigError& b) {
      return (a.line == 0 ? SIZE_MAX : a.line) < (b.line == 0 ? SIZE_MAX : b.line);
    });
    first->others = errors_.size() - 1;
    return std::move(*first);
  }

 private:
  // The optional sections must stand before their keys' defaults are read.
  void start_sections(const Json& root) {
    const auto tls = root.find("tls");
    if (tls != root.end() && tls->is_object()) config_.tls.emplace();
    const auto map = root.find("shard_map");
    if (map != root.end() && map->is_object()) config_.shard_map.emplace();
  }

  void set_defaults() {
    for (const Key& key : keys()) {
      if (key.fallback.empty() || !present(config_, key)) continue;
      [[maybe_unused]] const auto wrong = key.read(config_, Json::parse(key.fallback), base_dir_);
      assert(!wrong);
    }
  }

  void read_object(const Json& object, const std::string& section) {
    for (const auto& [name, value] : object.items()) {
      const std::string path = section.empty() ? name : section + "." + name;
      if (section.empty() && name == "$schema") {
        if (!value.is_string()) fault(path, "expected the schema's location in a string");
        continue;
      }
      const auto key = std::find_if(keys().begin(), keys().end(), [&](const Key& k) { return k.path == path; });
      // A dot inside a key's name must not make a path of it.
      if (key != keys().end() && name.find('.') == std::string::npos) {
        read_key(*key, value);
      } else if (section.empty() && is_section(name)) {
        read_section(name, value);
      } else {
        fault(path, "unknown key; " + suggestion(section, name));
      }
    }
  }

  void read_key(const Key& key, const Json& value) {
    if (auto wrong = key.read(config_, value, base_dir_)) fault(key.path + wrong->suffix, std::move(wrong->message));
  }

  void read_section(const std::string& name, const Json& value) {
    if (value.is_object()) return read_object(value, name);
    if (name == "tls" && value == "off") return;
    if (name == "shard_map" && value.is_null()) return;
    const char* also = name == "tls" ? " with certificate and private_key, or \"off\"" : "";
    const std::string found =
        value.is_structured() ? "a list" : value.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 60);
    fault(name, std::string("expected an object") + also + ", found " + found);
  }

  void require(const Json& root) {
    for (const Section& section : sections()) {
      if (section.required && !root.contains(section.name)) {
        fault(section.name,
              "is missing: write {\"certificate\": FILE, \"private_key\": FILE}, or \"off\" behind a proxy on this box",
              0);
      }
    }
    for (const Key& key : keys()) {
      if (!key.fallback.empty() || !present(config_, key)) continue;
      const std::string section = key.section();
      const Json& object = section.empty() ? root : root.at(section);
      if (!object.contains(key.name()))
        fault(key.path, "is missing: expected " + expectation(key.rule), line_of(section));
    }
  }

  static bool is_section(const std::string& name) {
    return std::any_of(sections().begin(), sections().end(), [&](const Section& s) { return s.name == name; });
  }

  static std::string suggestion(const std::string& section, const std::string& name) {
    // Written as this program names keys in its messages.
    if (const std::size_t dot = name.find('.'); section.empty() && dot != std::string::npos) {
      const std::string outer = name.substr(0, dot), inner = name.substr(dot + 1);
      if (is_section(outer)) return "write it as \"" + outer + "\": { \"" + inner + "\": ... }";
    }
    std::vector<std::string> siblings, everywhere;
    for (const Key& key : keys()) {
      if (key.name() == name) return "did you mean " + key.path + "?";
      everywhere.push_back(key.path);
      if (key.section() == section) siblings.push_back(key.name());
    }
    if (section.empty()) {
      for (const Section& s : sections()) siblings.push_back(s.name);
    }
    const std::string prefix = section.empty() ? "" : section + ".";
    if (const std::string near = nearest(name, siblings); !near.empty()) return "did you mean " + prefix + near + "?";
    std::vector<std::string> names;
    for (const Key& key : keys()) names.push_back(key.name());
    if (const std::string near = nearest(name, names); !near.empty()) {
      return "did you mean " +
             everywhere[static_cast<std::size_t>(std::find(names.begin(), names.end(), near) - names.begin())] + "?";
    }
    return "valid ones here: " + join(siblings);
  }

  [[nodiscard]] std::size_t line_of(std::string path) const {
    // A part without a line of its own ("limits.x[1].limit") stands where its key does.
    while (!path.empty()) {
      if (const auto found = lines_.find(path); found != lines_.end()) return found->second;
      const std::size_t cut = path.find_last_of(".[");
      path.resize(cut == std::string::npos ? 0 : cut);
    }
    return 0;
  }

  void fault(const std::string& path, std::string message) { fault(path, std::move(message), line_of(path)); }
  void fault(const std::string& path, std::string message, std::size_t line) {
    errors_.push_back({"", line, path, std::move(message), 0});
  }

  const JsonLines& lines_;
  const std::string& base_dir_;
  Config config_;
  std::vector<ConfigError> errors_;
};

// Beside what the parser met: what to do about it.
std::string syntax_advice(std::string_view text, const JsonFault& fault) {
  if (fault.what.starts_with("a comma before")) return "remove the comma";
  if (fault.what == "a byte order mark") return "save the file as plain UTF-8, without one";
  if (fault.what == "a NUL byte") return "save the file as plain UTF-8";
  if (fault.what == "the text ends too early") return "a closing } or ] is missing, or a quote before it";
  if (!fault.what.starts_with("unexpected")) return "";
  const bool comment_left = without_comments(text).find("/*") != std::string::npos;
  if (comment_left && fault.what.find('/') != std::string::npos)
    return "a /* comment is not closed: write */ behind it";
  if (fault.what.find('\'') != std::string::npos) return "strings stand in double quotes";
  if (fault.what.ends_with("?\""))  // what is no ASCII is shown so: a curly quote, or bytes of another encoding
    return "quotes must be plain \", and the file UTF-8";
  if (fault.what.find('#') != std::string::npos) return "comments begin with //";
  if (fault.what.find("<U+000A>") != std::string::npos) return "a string ends on the line where it begins";
  return "look for a missing comma, quote or colon before it; words other than true, false and null need double quotes";
}

ConfigError syntax_error(std::string_view text, const JsonFault& fault) {
  std::string message = fault.what;
  if (fault.error == Error::duplicate_key) message = "duplicate key; keep one of the two";
  if (const std::string advice = syntax_advice(text, fault); !advice.empty()) message += "; " + advice;
  return {"", fault.line, fault.error == Error::duplicate_key ? fault.path : "", message, 0};
}

}  // namespace

std::string ConfigError::one_line() const {
  std::string out = file.empty() ? "configuration" : file;
  if (line != 0) out += (file.empty() ? " line " : ":") + std::to_string(line);
  if (!path.empty()) out += ": " + path;
  out += ": " + message;
  if (others != 0) out += " (and " + std::to_string(others) + (others == 1 ? " more fault)" : " more faults)");
  std::string printable;
  for (const char c : out) printable += static_cast<unsigned char>(c) < ' ' || c == 127 ? '?' : c;
  if (printable.size() > 500) printable = printable.substr(0, 497) + "...";
  return printable;
}

std::variant<Config, ConfigError> parse(std::string_view text, const std::string& base_dir) {
  Json root;
  JsonFault fault;
  JsonLines lines;
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return ConfigError{"", 1, "", "is empty; the top level must be an object: { ... }", 0};
  }
  if (!parse_json_file(without_comments(text), kLimits, false, root, fault, &lines)) return syntax_error(text, fault);
  if (!root.is_object()) return ConfigError{"", 1, "", "the top level must be an object: { ... }", 0};
  Reader reader(lines, base_dir);
  reader.read(root);
  return reader.take();
}

std::variant<Config, ConfigError> load(const std::string& file) {
  const auto refused = [&](std::string message) { return ConfigError{file, 0, "", std::move(message), 0}; };
  struct stat info{};
  if (::stat(file.c_str(), &info) != 0) return refused(std::string("cannot be read: ") + std::strerror(errno));
  if (S_ISDIR(info.st_mode)) return refused("is a directory; name the configuration file");
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  if (in) text << in.rdbuf();
  if (!in) return refused(std::string("cannot be read: ") + std::strerror(errno));
  const std::size_t slash = file.rfind('/');
  auto out = parse(text.str(), slash == std::string::npos ? "" : slash == 0 ? "/." : file.substr(0, slash));
  std::visit([&](auto& v) { v.file = file; }, out);
  return out;
}

}  // namespace tandem::config
