// Fits of one process share nothing: many at once, each with threads of its own, give the bits of one after another.
#include <thread>

#include "check.hpp"
#include "predict.hpp"
#include "samples.hpp"
#include "train.hpp"

using namespace dpsvm;

namespace {

struct Job {
  Machine machine;
  KernelType kernel;
  const char* selector;
  Algorithm algorithm = Algorithm::smo;
};

constexpr Job kJobs[] = {
    {Machine::c_svc, KernelType::rbf, "wss2"},
    {Machine::c_svc, KernelType::linear, "wss2", Algorithm::decomposition},
    {Machine::nu_svc, KernelType::poly, "wss1"},
    {Machine::one_class, KernelType::rbf, "wss4"},
    {Machine::epsilon_svr, KernelType::rbf, "dpwss"},
    {Machine::nu_svr, KernelType::sigmoid, "wss3"},
};

struct Answer {
  std::vector<double> rho, dual_coef, decisions;

  bool operator==(const Answer& other) const {
    return rho == other.rho && dual_coef == other.dual_coef && decisions == other.decisions;
  }
};

Answer answer(const Job& job, Matrix x, const Cloud& cloud) {
  TrainOptions options;
  options.machine.machine = job.machine;
  options.machine.nu = 0.4;
  options.kernel.type = job.kernel;
  options.kernel.gamma = 0.1;
  options.algorithm = job.algorithm;
  options.selector.name = job.selector;
  options.selector.seed = 7;
  options.cache_bytes = 1 << 16;
  options.threads = 2;
  TrainInput input;
  input.x = x;
  input.rows = all_rows(cloud.n);
  input.y = cloud.y.data();
  input.classes = is_classifier(job.machine) ? 2 : 0;
  Watch watch(nullptr, nullptr, 1e300);
  const Model model = train(input, options, watch);

  std::vector<double> vectors;
  for (std::int32_t row : model.support)
    vectors.insert(vectors.end(), &cloud.x[row * cloud.d], &cloud.x[row * cloud.d] + cloud.d);
  PredictInput asked;
  asked.x = x;
  asked.n_sv = static_cast<Index>(model.support.size());
  asked.support_vectors = DenseView<double>{vectors.data(), asked.n_sv, cloud.d, cloud.d};
  asked.dual_coef = model.dual_coef.data();
  asked.rho = model.rho.data();
  asked.n_support = model.n_support.data();
  asked.machine = job.machine;
  asked.classes = input.classes;
  asked.kernel = options.kernel;
  asked.threads = 2;
  Answer found{model.rho, model.dual_coef, std::vector<double>(static_cast<std::size_t>(cloud.n))};
  decision_values(asked, found.decisions.data(), watch);
  return found;
}

void fits_at_once_give_the_serial_bits(const Matrix& x, const Cloud& cloud) {
  std::vector<Answer> serial;
  for (const Job& job : kJobs) serial.push_back(answer(job, x, cloud));

  constexpr int kThreads = 6;
  std::vector<std::vector<Answer>> found(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (const Job& job : kJobs) found[t].push_back(answer(job, x, cloud));
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<Answer>& answers : found) CHECK(answers == serial);
}

}  // namespace

int main() {
  const Cloud cloud = make_cloud(160, 6, 0.3, 5);
  const Csr csr = to_csr(cloud);
  fits_at_once_give_the_serial_bits(Matrix(cloud.view()), cloud);
  fits_at_once_give_the_serial_bits(Matrix(csr.view()), cloud);
  return check::result();
}
