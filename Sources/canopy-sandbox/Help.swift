extension Sandbox {
    static let help = """
        Usage: canopy-sandbox [--port N] [OPTION]…

        A Canopy server of your own on 127.0.0.1, over plain HTTP, with three identities, a
        native and a web key, which are always the same. Sessions end with it.

          --port N              listen there; 0, the default, chooses a free port
          --lifetime S          seconds that access tokens live (900)
          --grace S             seconds in which a replayed refresh token is a lost answer (10)
          --clock S             seconds that its clock is ahead of the machine's, or behind it if
                                negative
          --refresh-lifetime S  seconds that refresh tokens live (for ever)
          --new-successor       answer a harmless retry with a new token, not the same again
          --no-throttle         no limit of 5 sign-ins in 15 minutes
          --no-wrap             bare objects, without {"data":…}
          --strict              400 for unknown fields in requests
          --code-null           errors with a null code
          --stray-headers       an interim answer and trailers that tell another time, and to wait
          --identities N        also user1@example.com to userN@example.com
          --token-bytes N       access tokens of at least N bytes (up to 1 MiB)
          --refresh-token-bytes N
                                refresh tokens of at least N bytes (up to 32 KiB)
          --no-history          leave presentations out of /admin/state
          --fault FAULT         spoil a request; may be repeated, first come, first served
          --chaos SEED:PERMILLE spoil so many of 1000 refreshes, with faults that a client can
                                recover from; the same order of requests meets the same faults
          -h, --help · --version

        A FAULT is NAME or NAME:SETTING,…
          names                 answer-lost request-lost reset silence status-302
                                status-400-html status-401-html status-403-html status-408
                                status-429 status-500 status-502 status-503 status-504 slow
                                hold late-401 truncated-json truncated-body html-200 empty-200
                                non-json no-refresh-token no-expires-in echo-body huge-body
                                unended-body open-body broken-text long-body
          before, after         whether the request takes effect first, where that is open
          on=ENDPOINT           refresh (usual), login, logout, me, sessions, mfa
          identity=EMAIL        only requests of this identity
          count=N               how many requests (1); 0 for every one
          retry-after=S         or retry-after=date:S for an HTTP date S seconds ahead
          delay-ms=N            what slow waits (1000)
          status=N              what echo-body answers (400)

        Requests of the sandbox's own, JSON in and out:
          GET /admin/state                               counters and families
          GET /admin/counters                            the same, without what was presented
          GET, POST, DELETE /admin/faults                {"name":"status-503","when":"after",
                                                         "on":"refresh","count":1,
                                                         "identity":"ada@example.com",
                                                         "retry_after":"5"}, or an array;
                                                         DELETE ends chaos too
          POST /admin/chaos {"seed":N,"permille":M}
          POST /admin/release                            lets held answers go
          POST /admin/refuse {"milliseconds":M}          connections are refused meanwhile
          POST /admin/advance {"seconds":S}              moves the sandbox's clock
          POST /admin/revoke-key {"key":"pk_…"}
          POST /admin/revoke-identity {"email":"…"}      ends its sessions
          POST /admin/set-active {"email":"…","active":false}

        """
}
