import DropIns
import SharedContainer
import TestSupport
import TestTraits
import Testing

/// Where the drop-in modules tell of what their originals cannot report.
@Suite struct DropInLogTests {
  @Test(.blocking) func theThousandthLineTakesNoMoreStackThanTheFirst() throws {
    let places = Heard<UInt>()
    let mark = "how deep is the stack?"
    DropInLog.redirect { entry in
      // Other tests may have something to tell meanwhile.
      guard "\(entry)".contains(mark) else { return }
      var local = 0
      // Only where it lies is of interest.
      withUnsafePointer(to: &local) { places.add(UInt(bitPattern: $0)) }
    }
    defer { DropInLog.redirect(to: nil) }
    for _ in 0..<1000 { DropInLog.tell(.info, mark) }
    let all = places.all
    let (first, last) = try (#require(all.first), #require(all.last))
    #expect(all.count == 1000)
    #expect(max(first, last) - min(first, last) < 1024)
  }
}
