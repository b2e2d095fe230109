/** Runway: models by their names, such as `gen4_turbo`. */
import type { ProviderPreset } from '../provider.ts'

export const runway: ProviderPreset = {
  title: 'Runway',
  baseUrls: { runway: 'https://api.dev.runwayml.com/v1' },
}
