#include "monitor/top/screen.h"

#include <langinfo.h>
// Behind everything else: its macros are plain words.
#include <curses.h>

#include <algorithm>
#include <chrono>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <stdexcept>

namespace dshang::monitor {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kQuit = 'q';
constexpr int kKeyWaitMilliseconds = 100;
constexpr const char* kKeys = "q ends   g groups equal ranks   arrows, page keys scroll";

volatile std::sig_atomic_t interrupted = 0;
void note_interrupt(int) { interrupted = 1; }

std::string verdict_line(const JobLook& look) {
  if (!look.finding.empty()) return look.finding;
  if (look.verdict.empty()) return "nothing found so far";
  return look.verdict;
}

// Takes the first `width` columns off a text; all of it, cut, where it is the last line.
std::string take_line(std::string* text, std::size_t width, bool last) {
  const std::string cut = fitted(*text, width);
  if (last || cut == *text) {
    text->clear();
    return cut;
  }
  const std::string whole = text->substr(0, cut.size() - std::strlen("…"));
  text->erase(0, whole.size());
  return whole;
}

// The terminal is in its usual state again once this is gone.
class Terminal {
 public:
  Terminal() {
    setlocale(LC_ALL, "");
    if (newterm(nullptr, stdout, stdin) == nullptr) {
      const char* name = std::getenv("TERM");
      throw std::runtime_error("top: the terminal " + std::string(name ? name : "(TERM is not set)") +
                               " is not known; dshang top --once prints the table");
    }
    cbreak();
    noecho();
    curs_set(0);
    keypad(stdscr, TRUE);
    timeout(kKeyWaitMilliseconds);
  }
  ~Terminal() { endwin(); }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
};

class Screen {
 public:
  // False: the user has had enough.
  bool take_keys() {
    const int key = getch();
    switch (key) {
      case kQuit:
        return false;
      case 'g':
        group_ = !group_;
        break;
      case KEY_DOWN:
        ++top_;
        break;
      case KEY_UP:
        top_ -= 1;
        break;
      case KEY_NPAGE:
        top_ += rows();
        break;
      case KEY_PPAGE:
        top_ -= rows();
        break;
      case KEY_HOME:
        top_ = 0;
        break;
      case ERR:
        return true;
      default:
        break;
    }
    draw();
    return true;
  }

  void set(JobLook look) {
    look_ = std::move(look);
    trouble_.clear();
    draw();
  }
  void set_trouble(const std::string& text) {
    trouble_ = text;
    draw();
  }

 private:
  int rows() const { return std::max(1, LINES - kAround); }

  void put(int line, const std::string& text, int look = A_NORMAL) const {
    if (line >= LINES) return;
    attrset(look);
    mvaddstr(line, 0, fitted(text, static_cast<std::size_t>(std::max(1, COLS))).c_str());
    attrset(A_NORMAL);
  }

  // More ranks than lines are grouped unasked; `g` then shows them one by one.
  void draw() {
    const bool crowded = static_cast<int>(look_.table.rows.size()) > rows();
    const RankTable table = crowded != group_ ? grouped(look_.table) : look_.table;
    const auto lines = lines_of(table, static_cast<std::size_t>(std::max(COLS, 1)));
    const int below = static_cast<int>(lines.size()) - kHead - rows();
    top_ = std::clamp(top_, 0, std::max(0, below));
    erase();
    put(0, lines[0]);
    put(1, lines[1], A_REVERSE);
    for (int i = 0; i < rows() && kHead + top_ + i < static_cast<int>(lines.size()); ++i) {
      const auto at = static_cast<std::size_t>(kHead + top_ + i);
      const std::string& state = table.rows[at - kHead].state;
      put(kHead + i, lines[at], state == "runs" ? A_NORMAL : A_BOLD);
    }
    std::string told = trouble_.empty() ? verdict_line(look_) : trouble_;
    for (int line = LINES - 1 - kVerdict; line < LINES - 1; ++line) {
      put(line, take_line(&told, static_cast<std::size_t>(std::max(COLS, 1)), line == LINES - 2), A_BOLD);
    }
    put(LINES - 1,
        below > 0 ? std::string(kKeys) + "   (" + std::to_string(below - top_) + " rows below)" : kKeys,
        A_DIM);
    refresh();
  }

  static constexpr int kHead = 2;                       // lines above the rows
  static constexpr int kVerdict = 3;                    // lines of what was found
  static constexpr int kAround = kHead + kVerdict + 1;  // lines that are no rows
  JobLook look_;
  std::string trouble_;
  int top_ = 0;
  bool group_ = false;
};

}  // namespace

std::string text_of(const JobLook& look, std::size_t width, bool group) {
  std::string text;
  for (const std::string& line : lines_of(group ? grouped(look.table) : look.table, width))
    text += line + "\n";
  return text + verdict_line(look) + "\n";
}

int show_live(const LiveJob& job, double interval) {
  JobLook first = job.look();  // what cannot be read is said on the usual screen
  const auto between = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(interval));
  std::signal(SIGINT, note_interrupt);
  std::signal(SIGTERM, note_interrupt);
  Terminal terminal;
  Screen screen;
  screen.set(std::move(first));
  auto next = Clock::now() + between;
  while (!interrupted && screen.take_keys()) {
    if (Clock::now() < next) continue;
    try {
      screen.set(job.look());
    } catch (const std::exception& error) {
      screen.set_trouble(error.what());
    }
    next = Clock::now() + between;
  }
  return 0;
}

}  // namespace dshang::monitor
