/// Error correction over the field of 256 elements that QR codes use.
struct ReedSolomon: Sendable {
  /// The generator's coefficients after the leading one, which is 1.
  private let generator: [UInt8]

  /// - Parameter count: the number of codewords for error correction.
  init(_ count: Int) {
    // The product of (x - 2^i): each factor shifts the product and adds its multiple.
    var product: [UInt8] = [1]
    var root: UInt8 = 1
    for _ in 0..<count {
      var next = product + [0]
      for index in product.indices { next[index + 1] ^= Self.multiply(product[index], root) }
      product = next
      root = Self.multiply(root, 2)
    }
    generator = Array(product.dropFirst())
  }

  /// Returns the remainder of the division by the generator of the data, followed by as many zeros.
  func remainder(_ data: [UInt8]) -> [UInt8] {
    var rest = [UInt8](repeating: 0, count: generator.count)
    for byte in data {
      let factor = byte ^ rest[0]
      rest = Array(rest.dropFirst()) + [0]
      for index in rest.indices { rest[index] ^= Self.multiply(generator[index], factor) }
    }
    return rest
  }

  /// Multiplies modulo x^8 + x^4 + x^3 + x^2 + 1.
  private static func multiply(_ first: UInt8, _ second: UInt8) -> UInt8 {
    var product = 0
    for place in (0..<8).reversed() {
      product = product << 1 ^ (product >> 7 & 1) * 0x11D
      product ^= Int(second >> place & 1) * Int(first)
    }
    return UInt8(product)
  }
}
