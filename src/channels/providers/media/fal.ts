/** fal: models by their paths, such as `fal-ai/flux/dev`. */
import type { ProviderPreset } from '../provider.ts'

export const fal: ProviderPreset = {
  title: 'fal',
  baseUrls: { fal: 'https://queue.fal.run' },
}
