/// Something that goes on as long as somebody keeps this.
final class Brief<One: Lasting>: Sendable {
  let one: One

  init(_ one: One) { self.one = one }

  deinit { stop() }

  func stop() { one.stop() }
}
