/** What can be called in a run, and its prices: the checker reads the prices from the history. */
import { testConfig } from '../../support/service.ts'

/** Credits for one million tokens: whole numbers of 1e-8 credit for each token. */
export const CHAT_PRICES = {
  steady: { input: '1000000', output: '2000000' },
  cheap: { input: '31.1', output: '0.7' },
  free: { input: '0', output: '0' },
} as const

/** Credits for one image: of an upstream with a queue, and of one that answers with the picture. */
export const IMAGE_PRICES = { 'queued-image': '7', 'drawn-image': '12.5' } as const

const images = Object.entries(IMAGE_PRICES).map(
  ([id, price]) =>
    `  - { id: ${id}, endpoint_type: images_generations, pricing: { unit: image, per_unit: "${price}" } }`,
)

export const CATALOG = `${testConfig(CHAT_PRICES)}  - id: queue
    protocol: task
    base_url: \${TEST_SIMULATOR_URL}/task
    api_key: test
    models: { queued-image: sim-paint }
  - id: drawing
    protocol: openai-images
    base_url: \${TEST_SIMULATOR_URL}/v1
    api_key: test
    models: { drawn-image: sim-image }
`.replace(/^models:$/m, (line) => [line, ...images].join('\n'))
