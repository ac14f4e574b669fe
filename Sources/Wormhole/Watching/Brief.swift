/// Something that goes on as long as somebody keeps this.
final class Brief: Sendable {
  private let one: any Lasting

  init(_ one: any Lasting) { self.one = one }

  deinit { stop() }

  func stop() { one.stop() }
}
