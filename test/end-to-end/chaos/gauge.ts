import type { TestService } from '../../support/service.ts'

/** The value of one line of the metrics; NaN when there is none. */
export async function gauge(service: TestService, line: string): Promise<number> {
  const text = await (await fetch(`${service.baseUrl}/metrics`)).text()
  const found = text.split('\n').find((candidate) => candidate.startsWith(`${line} `))
  return Number(found?.slice(line.length))
}
