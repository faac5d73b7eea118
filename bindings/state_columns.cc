// Classes LazyColumn and ForkedColumns: the state of a model, one column after the other, made at
// once or in a forked child.

#include "bindings/state_columns.h"

#include <system_error>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/poll.h"

namespace dynhac {
namespace {

nb::object to_python(AnyColumn&& column, size_t width) {
  return std::visit(
      [&](auto&& values) {
        const size_t size = values.size();
        if (width == 0) return to_numpy(std::move(values));
        return to_numpy(std::move(values), {size / width, width});
      },
      std::move(column));
}

nb::object make(const LazyColumn& column) {
  return to_python(without_gil([&] {
                     Workers workers(column.threads);
                     const Workers::Session session(workers);
                     return column.make(workers);
                   }),
                   column.width);
}

class BoundColumns {
 public:
  explicit BoundColumns(const nb::list& columns) : forked_(parts(columns)) {}

  nb::object next(nb::handle progress) {
    CallPoll poll(progress);
    const size_t width = widths_.at(at_);
    AnyColumn column = without_gil([&] { return forked_.next(poll.get()); });
    ++at_;
    return to_python(std::move(column), width);
  }
  void close() {
    without_gil([&] { forked_.close(); });
  }

 private:
  std::vector<MakeColumn> parts(const nb::list& columns) {
    std::vector<MakeColumn> made;
    for (const nb::handle each : columns) {
      const auto& column = nb::cast<const LazyColumn&>(each);
      made.push_back(column.make);
      widths_.push_back(column.width);
    }
    return made;
  }

  std::vector<size_t> widths_;
  size_t at_ = 0;
  ForkedColumns forked_;
};

}  // namespace

void bind_state_columns(nb::module_& m) {
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const std::system_error& error) {
      const nb::tuple arguments = nb::make_tuple(error.code().value(), error.what());
      PyErr_SetObject(PyExc_OSError, arguments.ptr());
    }
  });
  nb::class_<LazyColumn>(m, "LazyColumn").def("make", &make);
  nb::class_<BoundColumns>(m, "ForkedColumns")
      .def(nb::init<const nb::list&>(), nb::arg("columns"))
      .def_static("supported", &ForkedColumns::supported)
      .def("next", &BoundColumns::next, nb::arg("progress").none() = nb::none())
      .def("close", &BoundColumns::close);
}

}  // namespace dynhac
