import Syscalls
import TestSupport
import TestTraits
import Testing

/// What copies of a process do not have is shown by those who rely on it:
/// `ThreadsAndForksTests.copiesMakeUpOtherNames`.
@Suite(.blocking) struct ForkMarkTests {
  @Test func itIsThereOnceItWasMade() {
    let mark = ForkMark()
    #expect(!mark.isThere)
    mark.make()
    #expect(mark.isThere)
    #expect(!ForkMark().isThere, "each is one for itself")
  }

  #if FAULT_POINTS
    @Test func withoutMemoryForItItIsNeverThere() {
      FaultPoints.with([FaultRule(.mmap, .fail(.noMemory))]) {
        let mark = ForkMark()
        mark.make()
        #expect(!mark.isThere)
      }
    }
  #endif
}
