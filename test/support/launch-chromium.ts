import { type Browser, chromium } from 'playwright-core'
import { findChromium } from './chromium-binary.ts'

/** Starts Chromium. Namespaces, which its sandbox needs, are missing in many containers; the pages are our own. */
export async function launchChromium(args: string[] = []): Promise<Browser> {
  const { path, env } = await findChromium()
  return chromium.launch({
    executablePath: path,
    env: env as Record<string, string>,
    chromiumSandbox: false,
    args,
  })
}
