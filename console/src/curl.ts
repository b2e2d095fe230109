/** Prints requests as commands for a shell. */

interface CurlOptions {
  /** Default: the key in the environment. */
  readonly key?: string | undefined
  readonly headers?: readonly string[]
  /** Breaks the body into lines. */
  readonly isPretty?: boolean
}

const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

/** Prints the command that sends a request to the service. */
export function printCurl(
  origin: string,
  path: string,
  body: object,
  { key = '$TOLLGATE_KEY', headers = [], isPretty = false }: CurlOptions = {},
): string {
  const isStream = 'stream' in body && body.stream === true
  return [
    `curl ${isStream ? '-N ' : ''}${origin}${path}`,
    `  -H "Authorization: Bearer ${key}"`,
    ...['Content-Type: application/json', ...headers].map((header) => `  -H ${quote(header)}`),
    `  -d ${quote(isPretty ? JSON.stringify(body, null, 2) : JSON.stringify(body))}`,
  ].join(' \\\n')
}
