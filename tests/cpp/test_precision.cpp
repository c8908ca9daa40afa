// Single precision is taken for rows around the origin, and not where its errors exceed what tells rows apart.
#include <cmath>

#include "check.hpp"
#include "precision.hpp"
#include "samples.hpp"

using namespace dpsvm;

namespace {

constexpr Index kRows = 300, kColumns = 3;

struct Floats {
  std::vector<float> x;
  DenseView<float> view() const { return {x.data(), kRows, kColumns, kColumns}; }
};

// A cloud around `offset`, every second row `apart` from the others.
Floats make_floats(double offset, double apart) {
  const Cloud cloud = make_cloud(kRows, kColumns, 0.0, 1);
  Floats floats;
  for (Index e = 0; e < kRows * kColumns; ++e)
    floats.x.push_back(static_cast<float>(cloud.x[e] + offset + (e / kColumns % 2 == 0 ? apart : 0.0)));
  return floats;
}

KernelSpec rbf(double gamma) {
  KernelSpec spec;
  spec.gamma = gamma;
  return spec;
}

bool enough(const Matrix& matrix, const KernelSpec& spec, Machine machine = Machine::c_svc) {
  ThreadPool pool(1);
  return SinglePrecision(machine, spec, matrix, all_rows(row_count(matrix)), pool).enough();
}

void depends_on_the_offset() {
  CHECK(enough(make_floats(0, 0).view(), rbf(1.0)));
  CHECK(!enough(make_floats(100, 0).view(), rbf(1.0)));
  CHECK(!enough(make_floats(1e5, 0).view(), rbf(1.0)));
  CHECK(!enough(make_floats(1e25, 0).view(), rbf(1.0)));  // squares overflow
}

// However wide the kernel: the rows of a cluster differ by less and less of it.
void depends_on_the_distance_of_clusters() {
  for (const double apart : {1e2, 1e3, 1e5}) {
    CHECK(!enough(make_floats(-apart / 2, apart).view(), rbf(1.0)));
    CHECK(!enough(make_floats(-apart / 2, apart).view(), rbf(1 / (apart * apart))));
  }
}

void is_for_rows_of_floats_in_machines_that_are_not_rescaled() {
  const Floats floats = make_floats(0, 0);
  const std::vector<double> doubles(floats.x.begin(), floats.x.end());
  CHECK(!enough(DenseView<double>{doubles.data(), kRows, kColumns, kColumns}, rbf(1.0)));
  CHECK(!enough(floats.view(), rbf(1.0), Machine::nu_svc));
  CHECK(!enough(floats.view(), rbf(1.0), Machine::nu_svr));
  CHECK(enough(floats.view(), rbf(1.0), Machine::one_class));
  KernelSpec sigmoid = rbf(1.0);
  sigmoid.type = KernelType::sigmoid;
  CHECK(!enough(floats.view(), sigmoid));
}

void equal_rows_tell_nothing() {
  const std::vector<float> x(kRows * kColumns, 0.5f);
  CHECK(!enough(DenseView<float>{x.data(), kRows, kColumns, kColumns}, rbf(1.0)));
}

void a_far_query_is_not_for_it() {
  const Floats floats = make_floats(0, 0);
  ThreadPool pool(1);
  const SinglePrecision single(Machine::c_svc, rbf(1.0), floats.view(), all_rows(kRows), pool);
  CHECK(single.enough_for(1.0f));
  CHECK(!single.enough_for(1e6f));
  CHECK(!single.enough_for(INFINITY));
}

// Compressed rows are judged like dense ones.
void layouts_agree() {
  for (const double offset : {0.0, 100.0}) {
    const Floats floats = make_floats(offset, 0);
    std::vector<std::int32_t> columns, offsets{0};
    for (Index i = 0; i < kRows; ++i) {
      for (Index k = 0; k < kColumns; ++k) columns.push_back(static_cast<std::int32_t>(k));
      offsets.push_back(static_cast<std::int32_t>((i + 1) * kColumns));
    }
    const CsrView<float, std::int32_t> csr{floats.x.data(), columns.data(), offsets.data(), kRows, kColumns};
    CHECK_EQUAL(enough(csr, rbf(1.0)), enough(floats.view(), rbf(1.0)));
  }
}

}  // namespace

int main() {
  depends_on_the_offset();
  depends_on_the_distance_of_clusters();
  is_for_rows_of_floats_in_machines_that_are_not_rescaled();
  equal_rows_tell_nothing();
  a_far_query_is_not_for_it();
  layouts_agree();
  return check::result();
}
