import TestTraits
import Testing
import WormholeSyscalls

@Suite(.blocking, .notSanitized("pure, on one thread")) struct SmallDictionaryTests {
  /// The keys are few enough that each comes and goes many times, and more than are compared.
  @Test(arguments: [3, 8, 9, 40]) func holdsWhatADictionaryHolds(keys: Int) {
    var small = SmallDictionary<String, Int>()
    var usual: [String: Int] = [:]
    var generator = SystemRandomNumberGenerator()
    for step in 0..<2000 {
      let key = "key \(Int.random(in: 0..<keys, using: &generator))"
      switch Int.random(in: 0..<4, using: &generator) {
      case 0: #expect(small.removeValue(forKey: key) == usual.removeValue(forKey: key))
      case 1: #expect(small.replace(key, step) == usual.updateValue(step, forKey: key))
      case 2:
        small[key] = nil
        usual[key] = nil
      default:
        small[key] = step
        usual[key] = step
      }
      #expect(small[key] == usual[key])
    }
    for key in (0..<keys).map({ "key \($0)" }) { #expect(small[key] == usual[key]) }
    #expect(small.isEmpty == usual.isEmpty)
    #expect(small.values.sorted() == usual.values.sorted())
  }

  @Test func aValueIsChangedInPlace() {
    var small = SmallDictionary<Int, [Int]>()
    small[1]?.append(2)
    #expect(small[1] == nil)
    small[1] = [1]
    small[1]?.append(2)
    #expect(small[1] == [1, 2])
    #expect(small.values == [[1, 2]])
  }
}
