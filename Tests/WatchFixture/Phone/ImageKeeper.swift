import Foundation

/// Whoever wants images.
protocol ImageKeeper: AnyObject {
  func keep(_ id: Int, at url: URL)
}

/// Keeps the names of images, and says so.
final class ImageCase: ImageKeeper {
  private var urls: [Int: URL] = [:]

  func keep(_ id: Int, at url: URL) {
    urls[id] = url
    let content = (try? String(contentsOf: url, encoding: .utf8)) ?? "nothing"
    print("kept \(url.lastPathComponent): \(content)")
  }
}
