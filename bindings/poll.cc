// Class Meter: reports progress.

#include "bindings/poll.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <utility>

#include "bindings/bindings.h"

namespace nb = nanobind;

namespace dynhac {

namespace {

constexpr std::chrono::milliseconds kSignals{50}, kReports{100};

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  return nb::inst_ready(self) ? nb::inst_ptr<Meter>(self)->traverse(visit, arg) : 0;
}

PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse)}, {0, nullptr}};

}  // namespace

void Meter::check() {
  const auto now = Clock::now();
  if (now - last_ < kSignals) return;
  last_ = now;
  const nb::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
  if (phase_.name != nullptr && now - last_report_ >= kReports && reports(now)) report(now, false);
}

void Meter::ended() {
  if (is_short() || start_.is_none()) return;
  const auto now = Clock::now();
  if (now < starts_at_) return;
  const nb::gil_scoped_acquire gil;
  if (reports(now)) report(now, true);
}

bool Meter::reports(Clock::time_point now) {
  if (start_.is_none() || now < starts_at_) return false;
  if (!report_.is_valid()) report_ = start_();
  if (report_.is_none()) start_ = nb::none();
  return !report_.is_none();
}

void Meter::report(Clock::time_point now, bool ended) {
  last_report_ = now;
  shown_ = !ended;
  const nb::object total = total_ == kUnknown ? nb::none() : nb::object(nb::int_(total_));
  report_(phase_.name, done_, total, phase_.unit, Seconds(now - phase_began_).count(), ended);
}

void Meter::begin_named(std::string phase, std::string unit, std::optional<uint64_t> total) {
  end();
  name_ = std::move(phase);
  unit_ = std::move(unit);
  begin({name_.c_str(), unit_.c_str()}, total.value_or(kUnknown));
}

void Meter::close() noexcept {
  phase_ = {};
  if (!std::exchange(shown_, false)) return;
  try {
    report_.attr("clear")();
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("the end of a phase");
  }
}

CallPoll::CallPoll(nb::handle progress) {
  static const auto type = reinterpret_cast<PyTypeObject*>(nb::type<Meter>().ptr());
  if (Py_IS_TYPE(progress.ptr(), type)) {
    meter_ = nb::inst_ptr<Meter>(progress);
  } else {
    meter_ = &own_.emplace(nb::borrow(progress));
  }
}

void bind_meter(nb::module_& m) {
  nb::class_<Meter>(m, "Meter", nb::type_slots(slots))
      .def(
          "__init__",
          [](Meter* self, nb::object start, double delay) {
            new (self) Meter(std::move(start), Meter::Seconds(delay));
          },
          nb::arg("start").none(), nb::arg("delay") = Meter::kDelay.count())
      .def("begin", &Meter::begin_named, nb::arg("phase"), nb::arg("unit"), nb::arg("total").none())
      .def(
          "advance", [](Meter& meter, uint64_t amount) { meter.advance(amount); },
          nb::arg("amount"))
      .def("end", [](Meter& meter) { meter.end(); })
      .def("__enter__", [](nb::object self) { return self; })
      .def("__exit__", [](Meter& meter, const nb::args&) { meter.close(); });
}

}  // namespace dynhac
