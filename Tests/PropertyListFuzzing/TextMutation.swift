/// Damages an XML or JSON text at its seams.
enum TextMutation {
  static let json = [
    "{", "}", "[", "]", ",", ":", "\"", "\\", "\\u", "\\ud83c", "\\udf00", "null", "true", "false",
    "-", "0", "00", "1e999", "1e-999", "-0", "0.1", "18446744073709551616", "99999999999999999999",
    "{\"$date\":\"2026-13-01T00:00:00Z\"}", "{\"$data\":\"=\"}", "{\"$real\":\"nan\"}", "\"$$\":",
    "\u{FEFF}", " ", "[[[[[[[[", "{\"a\":{\"a\":",
  ]

  static let xml = [
    "<dict>", "</dict>", "<array>", "</array>", "<key>", "</key>", "<string>", "</string>",
    "<integer>", "</integer>", "<real>nan</real>", "<data>=</data>", "<date>x</date>", "<true/>",
    "<false></false>", "<dict/>", "<![CDATA[", "]]>", "<!--", "-->", "&amp;", "&lt;", "&#0;",
    "&#x110000;", "&e;", "<?x?>", "<!DOCTYPE plist [<!ENTITY e \"x\">]>", "<plist>", "</plist>",
    "<array><array><array>", "\u{0}", "\u{FFFE}", "<",
  ]

  static func mutate(_ text: String, tokens: [String], _ random: inout Random) -> [UInt8] {
    var bytes = Array(text.utf8)
    for _ in 0...random.below(4) {
      let place = random.below(bytes.count + 1)
      switch random.below(6) {
      case 0, 1: bytes.insert(contentsOf: Array(random.pick(tokens).utf8), at: place)
      case 2:
        let end = min(bytes.count, place + random.below(12))
        bytes.removeSubrange(place..<end)
      case 3:
        let piece = bytes[place..<min(bytes.count, place + random.below(60))]
        bytes.insert(contentsOf: Array(piece), at: random.below(bytes.count + 1))
      case 4:
        if place < bytes.count { bytes[place] ^= 1 << UInt8(random.below(8)) }
      default:
        let token = Array(random.pick(tokens).utf8)
        let repeated = Array(repeatElement(token, count: random.below(300)).joined())
        bytes.insert(contentsOf: repeated, at: place)
      }
    }
    return bytes
  }
}
