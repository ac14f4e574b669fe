import TestTraits
import Testing

@testable import WormholeWeb

/// The hosts of requests that the server takes for its own.
@Suite(.blocking) struct WebGuardTests {
  private static let token = String(repeating: "a", count: 32)

  /// The status of the refusal of a request with a host; nil if the request is let through.
  private func refusal(of host: String, at address: String, port: UInt16) throws -> Int? {
    let gate = WebGuard(token: Self.token, try #require(WebAddress(address)), port: port)
    let request = WebRequest(
      .get, "/\(Self.token)/state", [.init("host", host), .init("origin", "http://\(host)")])
    do throws(WebRefusal) {
      let path = try gate.path(of: request)
      #expect(path == "state")
      return nil
    } catch {
      return error.status
    }
  }

  @Test func aBrowserLeavesOutThePortOfTheScheme() throws {
    for host in ["127.0.0.1", "localhost", "[::1]", "127.0.0.1:80", "localhost:80"] {
      #expect(try refusal(of: host, at: "127.0.0.1:80", port: 80) == nil, "\(host)")
    }
    for host in ["", ":80", "cinema.example", "localhost:8080", "127.0.0.1:", "::80", "[]"] {
      #expect(try refusal(of: host, at: "127.0.0.1:80", port: 80) == 421, "\(host)")
    }
  }

  @Test func aServerOfOneMachineIsNoOtherAddress() throws {
    for host in ["127.0.0.1:90", "127.0.0.2:90", "localhost:90", "[::1]:90"] {
      #expect(try refusal(of: host, at: "127.0.0.1:90", port: 90) == nil, "\(host)")
    }
    let others = ["192.0.2.1:90", "[2001:db8::1]:90", "127.0.0.1", "localhost", "localhost:91"]
    for host in others {
      #expect(try refusal(of: host, at: "127.0.0.1:90", port: 90) == 421, "\(host)")
    }
  }

  /// A name may resolve to any address; digits are an address of this machine, or do not arrive.
  @Test func aServerOfAllAddressesTakesAnyInDigits() throws {
    for host in ["192.0.2.1:90", "[2001:db8::1]:90", "127.0.0.1:90", "localhost:90"] {
      #expect(try refusal(of: host, at: "0.0.0.0:90", port: 90) == nil, "\(host)")
    }
    for host in ["cinema.example:90", "[127.0.0.1]:90", "::1:90", "[::1:90", "192.0.2.1"] {
      #expect(try refusal(of: host, at: "0.0.0.0:90", port: 90) == 421, "\(host)")
    }
  }

  /// A request that names its site twice has no site that can be trusted.
  @Test func aRequestWithTwoSitesIsRefused() throws {
    let gate = WebGuard(token: Self.token, try #require(WebAddress("127.0.0.1:90")), port: 90)
    func refusal(_ sites: String...) -> Int? {
      let fields = sites.map { WebRequest.Header("sec-fetch-site", $0) }
      let host = WebRequest.Header("host", "127.0.0.1:90")
      do throws(WebRefusal) {
        _ = try gate.path(of: WebRequest(.get, "/\(Self.token)/state", [host] + fields))
        return nil
      } catch {
        return error.status
      }
    }
    #expect(refusal() == nil)
    #expect(refusal("same-origin") == nil)
    #expect(refusal("cross-site") == 403)
    #expect(refusal("same-origin", "cross-site") == 403)
    #expect(refusal("cross-site", "cross-site") == 403)
  }
}
