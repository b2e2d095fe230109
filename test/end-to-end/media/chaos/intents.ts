/** Clients that want one thing each, and ask for it again under the same Idempotency-Key until they are answered. */
import type { Random } from '../../../simulation/random.ts'
import { eventually, type TestService } from '../../../support/service.ts'

/** What is made, and by which kind of upstream. */
export const MAKERS = {
  /** An upstream that can be asked by our reference. */
  film: {
    path: '/v1/videos/generations',
    body: (words: string) => ({ model: 'demo-video-film', prompt: words, duration: 2 }),
  },
  /** Two that cannot. */
  video: {
    path: '/v1/videos/generations',
    body: (words: string) => ({ model: 'demo-video', prompt: words, duration: 4 }),
  },
  music: {
    path: '/v1/music/generations',
    body: (words: string) => ({ model: 'demo-music', prompt: words }),
  },
  /** Two that answer with the result itself. */
  picture: {
    path: '/v1/images/generations',
    body: (words: string) => ({ model: 'demo-image', prompt: words, size: '64x64' }),
  },
  speech: {
    path: '/v1/audio/speech',
    body: (words: string) => ({ model: 'demo-speech', input: words, voice: 'alloy' }),
  },
} as const
export type Maker = keyof typeof MAKERS

export interface Intent {
  /** Its Idempotency-Key, and what its upstream calls the task. */
  readonly name: string
  readonly maker: Maker
  /** Directives of simulator/README.md. */
  readonly simulate: string
}

export interface Answered {
  readonly intent: Intent
  readonly status: number
  readonly body: Record<string, unknown>
}

/** A client with this answer asks again. */
const NOT_NOW = new Set([502, 503, 504])
const IN_FLIGHT = 'idempotency_in_flight'

/** Once. Null where no answer came. */
export async function asked(service: TestService, key: string, intent: Intent): Promise<Answered | null> {
  const { path, body } = MAKERS[intent.maker]
  const words = `${intent.name} [simulate: id=${intent.name}, ${intent.simulate}]`
  try {
    const response = await fetch(service.baseUrl + path, {
      method: 'POST',
      body: JSON.stringify(body(words)),
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        'idempotency-key': intent.name,
      },
    })
    return { intent, status: response.status, body: (await response.json()) as Record<string, unknown> }
  } catch {
    return null
  }
}

/** Until there is an answer that asking again would not change. */
export async function insisted(service: TestService, key: string, intent: Intent): Promise<Answered> {
  return eventually(`${intent.name} has its answer`, async () => {
    const answered = await asked(service, key, intent)
    return answered !== null && isLast(answered) ? answered : undefined
  })
}

const isLast = ({ status, body }: Answered): boolean =>
  !NOT_NOW.has(status) && (body.error as { code?: string } | undefined)?.code !== IN_FLIGHT

const MAKER_NAMES = Object.keys(MAKERS) as Maker[]

export function plannedIntents(random: Random, count: number): Intent[] {
  return Array.from({ length: count }, (_, index) => {
    const maker = random.pick(MAKER_NAMES)
    const delay = random.int(0, isWhole(maker) ? 300 : 1_500)
    return { name: `intent-${index}`, maker, simulate: [`delay=${delay}`, ...troubles(random)].join(', ') }
  })
}

/** Answers with the result itself. */
export const isWhole = (maker: Maker): boolean => maker === 'picture' || maker === 'speech'

/** None for half of them. */
function troubles(random: Random): string[] {
  switch (random.int(1, 20)) {
    case 1:
      return ['outcome=fail']
    case 2:
      return ['outcome=moderation']
    case 3:
      return ['outcome=refuse']
    case 4:
    case 5:
      return ['fault=accept_then_cut', 'times=1']
    case 6:
      return ['fault=reset:head', 'times=1']
    case 7:
    case 8:
      return [`ttft=${random.int(100, 800)}`]
    case 9:
      return ['poll_fault=status:500', 'times=2']
    case 10:
      return ['file_fault=reset:100', 'times=1']
    default:
      return []
  }
}
