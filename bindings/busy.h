// Whether somebody is in the middle of something, such as an update of a model.
//
// It is done under a lock that lets its own thread in again. What is called meanwhile, a function
// of the user's or a signal handler, has to find out here that it comes at a bad time.

#ifndef DYNHAC_BINDINGS_BUSY_H_
#define DYNHAC_BINDINGS_BUSY_H_

#include <nanobind/nanobind.h>

#include <string>

namespace dynhac {

struct Busy {
  std::string message;  // for who comes meanwhile
  bool held = false;
};

class Working {
 public:
  explicit Working(Busy& busy) : busy_(busy) { busy_.held = true; }
  Working(const Working&) = delete;
  Working& operator=(const Working&) = delete;
  ~Working() { busy_.held = false; }

 private:
  Busy& busy_;
};

void bind_busy(nanobind::module_& m);

}  // namespace dynhac

#endif  // DYNHAC_BINDINGS_BUSY_H_
