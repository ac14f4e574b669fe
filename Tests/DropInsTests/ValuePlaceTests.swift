import Foundation
import TestTraits
import Testing
import WormholeDropIns
import WormholePropertyLists

/// The places of refused values, and the order of observers.
@Suite(.blocking) struct ValuePlaceTests {
  private func place(_ any: [String: Any]) -> String? {
    do throws(NotAPropertyList) {
      _ = try PropertyListValue.dictionary(any: any)
      return nil
    } catch {
      return error.place
    }
  }

  @Test func theWholePathToARefusedValueIsNamed() {
    #expect(place(["a": NSNull()]) == "a")
    #expect(place(["in": ["deep": NSNull()]]) == "in.deep")
    #expect(place(["in": ["deep": [1, ["key": NSNull()]] as [Any]]]) == "in.deep[1].key")
    #expect(place(["list": [["ok"], [NSNull()]] as [Any]]) == "list[1][0]")
    #expect(place(["in": ["deep": [1, ["key": "text"]] as [Any]]]) == nil)
  }

  @Test func observersOfAnObjectAreToldInTheOrderOfTheirStart() {
    let publisher = ObservableObjectPublisher()
    var told: [Int] = []
    // More observers than a hash table has in order by chance.
    let observing = (1...20).map { number in publisher.sink { told.append(number) } }
    publisher.send()
    #expect(told == Array(1...20))
    for cancellable in observing.dropFirst(2) { cancellable.cancel() }
    publisher.send()
    #expect(told == Array(1...20) + [1, 2])
    for cancellable in observing { cancellable.cancel() }
  }
}
