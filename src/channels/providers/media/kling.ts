/** Kling: in China the host is `api-beijing.klingai.com`. */
import type { ProviderPreset } from '../provider.ts'

export const kling: ProviderPreset = {
  title: 'Kling',
  baseUrls: { kling: 'https://api-singapore.klingai.com/v1' },
}
