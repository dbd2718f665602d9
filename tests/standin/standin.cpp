// A device that stands in for a GPU: torch's PrivateUse1 key, memory of this process, the CPU's kernels.
//
// Python code meets what it would meet on CUDA: tensors of two devices do not mix, CPU code that reads the device's
// memory ends the process, a generator belongs to a device, and each place where the host waits for the device is
// counted. docs/devices.md says what that shows and what it cannot.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/InferSize.h>
#include <ATen/TensorUtils.h>
#include <ATen/autocast_mode.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <sys/mman.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/library.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <set>

namespace {

using c10::Device;
using c10::DeviceIndex;
using c10::DispatchKey;
using c10::DispatchKeySet;
using c10::IntArrayRef;
using std::optional;

constexpr auto STANDIN = c10::DeviceType::PrivateUse1;
const Device THE_DEVICE(STANDIN, 0);

// Host waits ---------------------------------------------------------------------------------------------------------

// On CUDA the host stands still when a number is read, data is copied either way, or the size of a result depends on
// data. Python is told the kind of each wait, and finds the line that caused it.
py::object& wait_listener = *new py::object(py::none());  // never destroyed: by then there is no interpreter
thread_local bool in_kernel = false;                      // what a CPU kernel does inside is no wait of the caller

struct InKernel {
  bool before = in_kernel;
  InKernel() { in_kernel = true; }
  ~InKernel() { in_kernel = before; }
};

void host_waits(const std::string& kind) {
  if (in_kernel || wait_listener.is_none()) return;
  py::gil_scoped_acquire gil;
  wait_listener(kind);
}

const std::set<std::string> SIZE_DEPENDS_ON_DATA{
    "aten::nonzero",  "aten::masked_select", "aten::_unique2",          "aten::unique_dim", "aten::unique_consecutive",
    "aten::bincount", "aten::histc",         "aten::repeat_interleave", "aten::equal",
};

// Memory -------------------------------------------------------------------------------------------------------------

// One file in memory, mapped twice. A tensor's address lies in the mapping without permissions, so that CPU code which
// takes it for its own dies by SIGSEGV; the kernels below read and write at the same offset of the other mapping.
class DeviceMemory {
 public:
  static DeviceMemory& instance() {
    static auto* memory = new DeviceMemory();  // outlives every tensor
    return *memory;
  }

  size_t take(size_t bytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    bytes = std::max<size_t>(ALIGNMENT, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    size_t offset;
    auto block = free_.lower_bound(bytes);
    if (block != free_.end() && block->first <= 2 * bytes) {
      offset = block->second;
      blocks_[offset] = block->first;
      free_.erase(block);
    } else {
      TORCH_CHECK(end_ + bytes <= SIZE, "standin: out of memory");
      offset = end_;
      end_ += bytes;
      blocks_[offset] = bytes;
    }
    allocated_ += blocks_[offset];
    peak_ = std::max(peak_, allocated_);
    return offset;
  }

  void give_back(size_t offset) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto block = blocks_.find(offset);
    allocated_ -= block->second;
    free_.emplace(block->second, offset);
    blocks_.erase(block);
  }

  void* address(size_t offset) const { return protected_ + offset; }
  void* readable(const void* address) const { return open_ + (static_cast<const char*>(address) - protected_); }
  std::pair<size_t, size_t> allocated_and_peak() const { return {allocated_, peak_}; }
  void reset_peak() { peak_ = allocated_; }

 private:
  static constexpr size_t SIZE = size_t(32) << 30;  // address space alone: a page exists once it is written
  static constexpr size_t ALIGNMENT = 64;

  DeviceMemory() {
    const int file = memfd_create("standin", 0);
    TORCH_CHECK(file >= 0 && ftruncate(file, SIZE) == 0, "standin: no file in memory");
    protected_ = map(file, PROT_NONE);
    open_ = map(file, PROT_READ | PROT_WRITE);
  }
  static char* map(int file, int permissions) {
    void* address = mmap(nullptr, SIZE, permissions, MAP_SHARED | MAP_NORESERVE, file, 0);
    TORCH_CHECK(address != MAP_FAILED, "standin: cannot map its memory");
    return static_cast<char*>(address);
  }

  char *protected_, *open_;
  size_t end_ = 0, allocated_ = 0, peak_ = 0;
  std::multimap<size_t, size_t> free_;  // size -> offset
  std::map<size_t, size_t> blocks_;     // offset -> size
  std::mutex mutex_;
};

void* readable(const void* address) { return DeviceMemory::instance().readable(address); }

struct DeviceAllocator final : c10::Allocator {
  // the context is offset + 1: a null context would never be given back
  static void give_back(void* context) { DeviceMemory::instance().give_back(reinterpret_cast<size_t>(context) - 1); }

  c10::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, THE_DEVICE};
    auto& memory = DeviceMemory::instance();
    const auto offset = memory.take(bytes);
    return {memory.address(offset), reinterpret_cast<void*>(offset + 1), &give_back, THE_DEVICE};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &give_back; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    std::memcpy(readable(to), readable(from), bytes);
  }
};
DeviceAllocator device_allocator;
REGISTER_ALLOCATOR(STANDIN, &device_allocator);

// CPU memory that counts as pinned: DDP's reducer asks for some and checks that it is.
class PinnedAllocator final : public c10::Allocator {
 public:
  static PinnedAllocator& instance() {
    static auto* allocator = new PinnedAllocator();
    return *allocator;
  }
  c10::DataPtr allocate(size_t bytes) override {
    std::lock_guard<std::mutex> lock(mutex_);
    void* block = std::aligned_alloc(64, std::max<size_t>(64, (bytes + 63) / 64 * 64));
    blocks_.insert(block);
    return {block, block, &give_back, Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &give_back; }
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }
  bool holds(const void* block) {
    std::lock_guard<std::mutex> lock(mutex_);
    return blocks_.count(block) > 0;
  }

 private:
  static void give_back(void* block) {
    std::lock_guard<std::mutex> lock(instance().mutex_);
    instance().blocks_.erase(block);
    std::free(block);
  }
  std::set<const void*> blocks_;
  std::mutex mutex_;
};

void resize_storage(c10::StorageImpl* storage, size_t bytes) {
  auto data = device_allocator.allocate(bytes);
  if (const auto kept = std::min(bytes, storage->nbytes())) {
    std::memcpy(readable(data.get()), readable(storage->data()), kept);
  }
  storage->set_data_ptr_noswap(std::move(data));
  storage->set_nbytes(bytes);
}

// Generator, device guard, hooks -------------------------------------------------------------------------------------

// The CPU's generator, kept on the device. The CPU's kernels accept one that says it is the CPU's: `AsCpuGenerator`.
struct DeviceGenerator final : at::CPUGeneratorImpl {
  DeviceGenerator() { move_to(THE_DEVICE); }
  void move_to(Device device) {
    device_ = device;
    key_set_ = DispatchKeySet(device.is_cpu() ? DispatchKey::CPU : DispatchKey::PrivateUse1);
  }
  DeviceGenerator* clone_impl() const override {
    auto* copy = new DeviceGenerator();
    copy->set_state(*get_state());
    return copy;
  }
};

struct AsCpuGenerator {
  DeviceGenerator* generator;
  explicit AsCpuGenerator(const at::Generator& given)
      : generator(static_cast<DeviceGenerator*>(given.unsafeGetGeneratorImpl())) {
    generator->move_to(Device(c10::kCPU));
  }
  ~AsCpuGenerator() { generator->move_to(THE_DEVICE); }
};

const at::Generator& default_generator() {
  static auto generator = at::make_generator<DeviceGenerator>();
  return generator;
}

struct DeviceGuard final : c10::impl::NoOpDeviceGuardImpl<STANDIN> {
  static c10::Stream the_stream() { return c10::Stream(c10::Stream::DEFAULT, THE_DEVICE); }
  Device exchangeDevice(Device) const override { return THE_DEVICE; }
  Device getDevice() const override { return THE_DEVICE; }
  c10::Stream getStream(Device) const noexcept override { return the_stream(); }
  c10::Stream getDefaultStream(Device) const override { return the_stream(); }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override { return stream; }
  void record(void**, const c10::Stream&, const DeviceIndex, const c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override { host_waits("synchronize"); }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, DeviceGuard);

struct DeviceHooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  DeviceIndex deviceCount() const override { return 1; }
  DeviceIndex getCurrentDevice() const override { return 0; }
  void setCurrentDevice(DeviceIndex) const override {}
  DeviceIndex exchangeDevice(DeviceIndex) const override { return 0; }
  DeviceIndex maybeExchangeDevice(DeviceIndex) const override { return 0; }
  Device getDeviceFromPtr(void*) const override { return THE_DEVICE; }
  const at::Generator& getDefaultGenerator(DeviceIndex) const override { return default_generator(); }
  at::Generator getNewGenerator(DeviceIndex) const override { return at::make_generator<DeviceGenerator>(); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &PinnedAllocator::instance(); }
  bool isPinnedPtr(const void* data) const override { return PinnedAllocator::instance().holds(data); }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    resize_storage(storage.unsafeGetStorageImpl(), bytes);
  }
};
const bool hooks_registered = [] {
  at::RegisterPrivateUse1HooksInterface(new DeviceHooks());
  return true;
}();

// Allocation, views, copies ------------------------------------------------------------------------------------------

constexpr DispatchKeySet KEYS(DispatchKey::PrivateUse1);

at::Tensor as_cpu(const at::Tensor& tensor) {  // the same memory, where the CPU's kernels may use it
  const auto options = at::TensorOptions().dtype(tensor.dtype()).device(c10::kCPU);
  if (tensor.numel() == 0) return at::empty_strided(tensor.sizes(), tensor.strides(), options);
  auto seen = at::from_blob(readable(tensor.const_data_ptr()), tensor.sizes(), tensor.strides(), options);
  if (tensor.is_conj()) seen._set_conj(true);
  if (tensor.is_neg()) seen._set_neg(true);
  return seen;
}

at::Tensor empty(IntArrayRef size, optional<c10::ScalarType> dtype, optional<c10::Layout>, optional<Device>,
                 optional<bool> pinned, optional<c10::MemoryFormat> format) {
  TORCH_CHECK(!pinned.value_or(false), "Only CPU memory can be pinned");
  return at::detail::empty_generic(size, &device_allocator, KEYS, c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(IntArrayRef size, IntArrayRef stride, optional<c10::ScalarType> dtype, optional<c10::Layout>,
                         optional<Device>, optional<bool> pinned) {
  TORCH_CHECK(!pinned.value_or(false), "Only CPU memory can be pinned");
  return at::detail::empty_strided_generic(size, stride, &device_allocator, KEYS, c10::dtype_or_default(dtype));
}

at::Tensor view_of(const at::Tensor& tensor, IntArrayRef size, IntArrayRef stride, int64_t offset) {
  auto view = at::detail::make_tensor<c10::TensorImpl>(c10::TensorImpl::VIEW, c10::Storage(tensor.storage()),
                                                       tensor.key_set(), tensor.dtype());
  view.unsafeGetTensorImpl()->set_sizes_and_strides(size, stride, offset);
  return view;
}

at::Tensor as_strided(const at::Tensor& tensor, IntArrayRef size, IntArrayRef stride, optional<int64_t> offset) {
  return view_of(tensor, size, stride, offset.value_or(tensor.storage_offset()));
}

at::Tensor view(const at::Tensor& tensor, IntArrayRef size) {
  const auto full_size = at::infer_size_dv(size, tensor.numel());
  const auto stride = at::detail::computeStride(tensor.sizes(), tensor.strides(), full_size);
  TORCH_CHECK(stride.has_value(),
              "view size is not compatible with input tensor's size and stride. Use .reshape(...) instead.");
  return view_of(tensor, full_size, *stride, tensor.storage_offset());
}

at::Tensor reshape_alias(const at::Tensor& tensor, IntArrayRef size, IntArrayRef stride) {
  return view_of(tensor, size, stride, tensor.storage_offset());
}

at::Tensor unfold(const at::Tensor& tensor, int64_t dim, int64_t size, int64_t step) {
  dim = c10::maybe_wrap_dim(dim, tensor.dim());
  auto sizes = tensor.sizes().vec();
  auto strides = tensor.strides().vec();
  sizes.push_back(size);
  strides.push_back(strides[dim]);
  sizes[dim] = (sizes[dim] - size) / step + 1;
  strides[dim] *= step;
  return view_of(tensor, sizes, strides, tensor.storage_offset());
}

const at::Tensor& resize(const at::Tensor& tensor, IntArrayRef size, optional<c10::MemoryFormat>) {
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous(size);
  const size_t bytes = (tensor.storage_offset() + tensor.numel()) * tensor.itemsize();
  if (tensor.numel() > 0 && bytes > tensor.storage().nbytes()) {
    resize_storage(tensor.storage().unsafeGetStorageImpl(), bytes);
  }
  return tensor;
}

at::Tensor& set_storage(at::Tensor& tensor, at::Storage storage, int64_t offset, IntArrayRef size, IntArrayRef stride) {
  auto* impl = tensor.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(storage));
  if (stride.data() == nullptr) {
    impl->set_storage_offset(offset);
    impl->set_sizes_contiguous(size);
  } else {
    impl->set_sizes_and_strides(size, stride, offset);
  }
  return tensor;
}

at::Tensor& set_to_tensor(at::Tensor& tensor, const at::Tensor& source) {
  return set_storage(tensor, source.storage(), source.storage_offset(), source.sizes(), source.strides());
}

at::Tensor& set_to_whole_storage(at::Tensor& tensor, at::Storage storage) {
  const int64_t size = storage.nbytes() / tensor.itemsize();
  return set_storage(tensor, storage, 0, {size}, {});
}

at::Tensor& set_to_nothing(at::Tensor& tensor) {
  return set_to_whole_storage(tensor, c10::Storage(c10::Storage::use_byte_size_t(), 0, &device_allocator, true));
}

at::Tensor copy_from(const at::Tensor& source, const at::Tensor& target, bool non_blocking) {
  if (target.is_cpu()) {
    host_waits("copy to the CPU");
  } else if (source.is_cpu() && !non_blocking) {
    host_waits("copy from the CPU");
  }
  InKernel copying;
  auto to = target.is_cpu() ? target : as_cpu(target);
  to.copy_((source.is_cpu() ? source : as_cpu(source)).expand_as(to));
  return target;
}

at::Tensor copy_from_and_resize(const at::Tensor& source, const at::Tensor& target) {
  if (target.sizes() != source.sizes()) target.resize_(source.sizes());
  return copy_from(source, target, false);
}

at::Scalar read_number(const at::Tensor& tensor) {
  host_waits("read of a number");
  InKernel reading;
  return as_cpu(tensor).item();
}

void record_stream(at::Tensor&, c10::Stream) {}

// Every other operator: the devices are checked as on CUDA, then the CPU's kernel runs -------------------------------

// Operators that torch's own wrappers around CUDA kernels do not check (`device_check: NoCheck` in
// native_functions.yaml, set from Python). Those take a CPU number (0 dimensions) beside the device's tensors, and
// some a CPU index; all others refuse both.
std::set<std::string> operators_without_check;

void check_devices(const c10::OperatorHandle& op, const torch::jit::Stack& stack, size_t first) {
  const auto& schema = op.schema();
  const bool takes_numbers = operators_without_check.count(toString(op.operator_name())) > 0;
  const bool takes_indices = schema.name().find("aten::index") == 0 || schema.name() == "aten::_index_put_impl_";
  bool has_device_tensor = false;
  std::string wrong;
  const auto check = [&](const at::Tensor& tensor, const std::string& argument) {
    if (!tensor.defined()) return;
    const bool allowed = tensor.is_cpu() && ((takes_numbers && tensor.dim() == 0) ||
                                             (takes_numbers && takes_indices && argument == "indices"));
    if (tensor.device().type() == STANDIN) {
      has_device_tensor = true;
    } else if (!allowed) {
      wrong = argument;
    }
  };
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const auto& value = stack[first + i];
    const auto& argument = schema.arguments()[i].name();
    if (value.isTensor()) {
      check(value.toTensor(), argument);
    } else if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorVector()) check(tensor, argument);
    } else if (value.isList()) {
      for (const c10::IValue& each : value.toListRef()) {
        if (each.isTensor()) check(each.toTensor(), argument);
      }
    } else if (value.isGenerator() && value.toGenerator().device().type() == STANDIN) {
      has_device_tensor = true;  // a CPU tensor asks for its numbers: what came here did by its generator
    }
  }
  TORCH_CHECK(!has_device_tensor || wrong.empty(),
              "Expected all tensors to be on the same device, but found at least two devices, standin:0 and cpu! "
              "(when checking argument ",
              wrong, " of ", schema.name(), ")");
}

void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto& arguments = op.schema().arguments();
  const size_t first = stack->size() - arguments.size();
  check_devices(op, *stack, first);
  if (SIZE_DEPENDS_ON_DATA.count(op.schema().name())) host_waits(op.schema().name());
  InKernel running;
  at::Generator generator;
  optional<AsCpuGenerator> as_cpu_generator;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].name() != "generator") continue;
    auto& value = (*stack)[first + i];
    generator = value.isNone() ? default_generator() : value.toGenerator();
    TORCH_CHECK(generator.device().type() == STANDIN, "Expected a 'standin' device type for generator but found '",
                generator.device(), "'");
    as_cpu_generator.emplace(generator);
    value = generator;
  }
  at::native::cpu_fallback(op, stack);
}

}  // namespace

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", empty);
  library.impl("empty_strided", empty_strided);
  library.impl("as_strided", as_strided);
  library.impl("view", view);
  library.impl("_reshape_alias", reshape_alias);
  library.impl("unfold", unfold);
  library.impl("resize_", resize);
  library.impl("_copy_from", copy_from);
  library.impl("_copy_from_and_resize", copy_from_and_resize);
  library.impl("_local_scalar_dense", read_number);
  library.impl("set_.source_Storage_storage_offset", set_storage);
  library.impl("set_.source_Storage", set_to_whole_storage);
  library.impl("set_.source_Tensor", set_to_tensor);
  library.impl("set_", set_to_nothing);
  library.impl("record_stream", record_stream);
}

// Autocast: torch's own lists of operators
namespace at::autocast {

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {  // the macros expect the name m
#define IN_LOWER_PRECISION(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
  AT_FORALL_LOWER_PRECISION_FP(IN_LOWER_PRECISION)
#define IN_FLOAT32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
  AT_FORALL_FP32(IN_FLOAT32)
#define INTO_FLOAT32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
  AT_FORALL_FP32_SET_OPT_DTYPE(INTO_FLOAT32)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
#define IN_WIDEST(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  AT_FORALL_PROMOTE(IN_WIDEST)
}

}  // namespace at::autocast

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.def("on_host_wait", [](py::object listener) { wait_listener = listener; });
  module.def("do_not_check", [](std::set<std::string> names) { operators_without_check = std::move(names); });
  module.def("allocated_and_peak", [] { return DeviceMemory::instance().allocated_and_peak(); });
  module.def("reset_peak", [] { DeviceMemory::instance().reset_peak(); });
  module.def("default_generator", [] { return default_generator(); });
}
