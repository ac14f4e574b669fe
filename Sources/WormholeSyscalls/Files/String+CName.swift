extension String {
  /// Calls the body with the bytes of a file name, and a zero after them, on the stack.
  ///
  /// For a name that several calls take: each conversion of a string to a pointer allocates memory.
  /// Inlinable, and public for that reason alone: see ``Monitor``.
  @inlinable public func withCName<Result, Failure: Error>(
    _ body: (UnsafePointer<CChar>) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let count = utf8.count
    return try withUnsafeTemporaryAllocation(of: CChar.self, capacity: count + 1) {
      buffer throws(Failure) in
      var place = 0
      for byte in utf8 {
        buffer[place] = CChar(bitPattern: byte)
        place += 1
      }
      buffer[count] = 0
      return try body(UnsafePointer(buffer.baseAddress.unsafelyUnwrapped))
    }
  }
}
