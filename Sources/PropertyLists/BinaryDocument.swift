/// A binary property list whose bytes have been validated, ready to be read in any order.
struct BinaryDocument {
  let bytes: [UInt8]
  let layout: BinaryLayout

  init(_ bytes: [UInt8], limits: PropertyListLimits) throws(PropertyListError) {
    // `withUnsafeBytes` would forget the error's type.
    let layout = bytes.withUnsafeBytes { raw in
      Result<BinaryLayout, PropertyListError> { () throws(PropertyListError) in
        try BinaryValidator(raw, limits: limits).layout
      }
    }
    self.bytes = bytes
    self.layout = try layout.get()
  }

  @inline(__always)
  func read<Result>(_ body: (BinaryObjects) -> Result) -> Result {
    bytes.withUnsafeBytes { body(BinaryObjects(bytes: $0, layout: layout)) }
  }
}
