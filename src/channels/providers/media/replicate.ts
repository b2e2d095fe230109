/** Replicate: models by owner and name, with or without a version. */
import type { ProviderPreset } from '../provider.ts'

export const replicate: ProviderPreset = {
  title: 'Replicate',
  baseUrls: { replicate: 'https://api.replicate.com/v1' },
}
