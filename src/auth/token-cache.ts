/** One token, fetched once however many calls wait for it, and again before it ends. */

/** From then on a newer token is fetched while calls go on with the one at hand. */
const REFRESH_AHEAD_MS = 5 * 60_000
/** Of a token that lives shorter: this share of its life. */
const REFRESH_AHEAD_SHARE = 0.2
/** A token that ends sooner could end on its way. */
const MIN_LEFT_MS = 10_000
/** How long calls fail at once after a failure. */
const FAILURE_REST_MS = 1_000
/** How often a refused token is replaced at most: a channel whose access was withdrawn refuses every token. */
const MIN_MS_BETWEEN_REPLACEMENTS = 30_000
const FETCH_TIMEOUT_MS = 15_000

export interface Expiring {
  /** Time in milliseconds for which it is good, from when it was asked for. */
  readonly lifeMs: number
}

export class TokenCache<Token extends Expiring> {
  readonly #fetch: () => Promise<Token>
  readonly #elapsed: () => number
  #token: Token | null = null
  #endsAt = 0
  #refreshAt = 0
  #refreshing: Promise<Token> | null = null
  #failure: { readonly until: number; readonly error: unknown } | null = null
  /** Until then a refused token is not replaced. */
  #keptUntil = 0

  /** @param elapsed returns milliseconds by a clock that is never set */
  constructor(fetch: () => Promise<Token>, elapsed: () => number) {
    this.#fetch = fetch
    this.#elapsed = elapsed
  }

  /** Returns the token at hand, or a promise of the next one, which all callers share. */
  get(): Token | Promise<Token> {
    const now = this.#elapsed()
    const token = this.#token
    if (token === null || this.#endsAt - now <= MIN_LEFT_MS) return this.#refresh(now)
    // A failure shows when the token at hand has ended.
    if (now >= this.#refreshAt) this.#refresh(now).catch(() => {})
    return token
  }

  /** Gives up a token that was refused. Returns whether `get` returns another one. */
  dropRefused(token: Token): boolean {
    if (token !== this.#token) return true
    const now = this.#elapsed()
    if (now < this.#keptUntil) return false
    this.#keptUntil = now + MIN_MS_BETWEEN_REPLACEMENTS
    this.#token = null
    return true
  }

  #refresh(now: number): Promise<Token> {
    if (this.#refreshing !== null) return this.#refreshing
    if (this.#failure !== null && now < this.#failure.until) return Promise.reject(this.#failure.error)
    const refreshing = boundTime(this.#fetch()).then(
      (token) => {
        this.#keep(token, now)
        return token
      },
      (error) => {
        this.#refreshing = null
        this.#failure = { until: this.#elapsed() + FAILURE_REST_MS, error }
        throw error
      },
    )
    this.#refreshing = refreshing
    return refreshing
  }

  #keep(token: Token, askedAt: number): void {
    this.#refreshing = null
    this.#failure = null
    this.#token = token
    this.#endsAt = askedAt + token.lifeMs
    this.#refreshAt = this.#endsAt - Math.min(REFRESH_AHEAD_MS, token.lifeMs * REFRESH_AHEAD_SHARE)
  }
}

/** Rejects when the work takes too long. */
function boundTime<T>(work: Promise<T>): Promise<T> {
  const timeout = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => timeout.reject(new Error(`There was no token within ${FETCH_TIMEOUT_MS / 1000} seconds.`)),
    FETCH_TIMEOUT_MS,
  )
  return Promise.race([work, timeout.promise]).finally(() => clearTimeout(timer))
}
