/** An error in ClickHouse's own terms: number, name and text, and the HTTP status a server gives it. */
export class ClickHouseFailure extends Error {
  readonly code: number
  readonly codeName: string

  constructor(code: number, codeName: string, text: string) {
    super(text)
    this.code = code
    this.codeName = codeName
  }

  /** Reads chDB's form of an error: `Code: 60. DB::Exception: … (UNKNOWN_TABLE)`. */
  static from(error: unknown): ClickHouseFailure {
    if (error instanceof ClickHouseFailure) return error
    const message = error instanceof Error ? error.message : String(error)
    const [, code, text, codeName] =
      /Code: (\d+)\. DB::(?:Net)?Exception: ([\s\S]*?)\s*\(([A-Z0-9_]+)\)[^()]*$/.exec(message) ?? []
    if (code === undefined) return new ClickHouseFailure(UNKNOWN_EXCEPTION, 'UNKNOWN_EXCEPTION', message)
    return new ClickHouseFailure(Number(code), codeName ?? '', text ?? '')
  }

  /** The body of the response. */
  get body(): string {
    return `Code: ${this.code}. DB::Exception: ${this.message}. (${this.codeName})\n`
  }

  get status(): number {
    for (const [status, codes] of STATUS_CODES) if (codes.includes(this.code)) return status
    return 500
  }
}

const UNKNOWN_EXCEPTION = 1002

/** The groups a ClickHouse server puts its codes in; every other one is a 500. */
const STATUS_CODES: ReadonlyArray<readonly [status: number, codes: readonly number[]]> = [
  [400, [6, 15, 26, 27, 36, 38, 41, 42, 43, 44, 53, 62, 69, 70, 72, 117, 164, 349, 456, 457]],
  [403, [192, 193, 194, 497, 516]],
  [404, [16, 46, 47, 50, 56, 60, 63, 73, 81, 115]],
  [408, [159]],
  [413, [307]],
  [501, [48]],
  [503, [202]],
]
