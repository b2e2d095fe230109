/** The browser of the tests: the machine's, else Debian's, downloaded once without root and kept. */
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { fetchDebianPackages } from '../../src/embedded/debian-packages.ts'
import { findProgram, plainEnvironment } from '../../src/embedded/programs.ts'

const NAMES = ['chromium', 'chromium-headless-shell', 'google-chrome', 'chromium-browser']
/** With it come the libraries that it needs and the machine lacks. Without a font no text has a size. */
const PACKAGES = ['chromium-headless-shell', 'fonts-dejavu-core']
/** Some 150 MB. */
const FETCH_BOUND_MS = 240_000
const CACHE = fileURLToPath(new URL('../../node_modules/.cache/tollgate/chromium', import.meta.url))
const FETCHED = join(CACHE, 'usr', 'lib', 'chromium', 'chromium-headless-shell')
const FONT_CONFIGURATION = join(CACHE, 'fonts.conf')

export interface ChromiumBinary {
  readonly path: string
  readonly env: NodeJS.ProcessEnv
}

/**
 * Returns the machine's Chromium, else the one that was downloaded, else downloads it.
 * @throws Error that says what to install when none exists and none can be downloaded
 */
export async function findChromium(): Promise<ChromiumBinary> {
  const installed = NAMES.map(findProgram).find((path) => path !== null)
  if (installed !== undefined) return { path: installed, env: plainEnvironment() }
  if (!existsSync(FETCHED)) await fetchChromium()
  writeFileSync(FONT_CONFIGURATION, fontConfiguration())
  return {
    path: FETCHED,
    env: {
      ...plainEnvironment(),
      LD_LIBRARY_PATH: libraryFolders().join(':'),
      FONTCONFIG_FILE: FONT_CONFIGURATION,
    },
  }
}

/** Every folder with libraries: some packages have a private one and look for it where it would be installed. */
function libraryFolders(): string[] {
  const libraries = ['lib', 'usr/lib'].flatMap((folder) =>
    existsSync(join(CACHE, folder))
      ? readdirSync(join(CACHE, folder), { recursive: true, encoding: 'utf8' }).map((name) =>
          join(CACHE, folder, name),
        )
      : [],
  )
  return [...new Set(libraries.filter((name) => /\.so(\.\d+)*$/.test(name)).map(dirname))]
}

async function fetchChromium(): Promise<void> {
  try {
    await fetchDebianPackages({
      words: ['install', '--yes', '--download-only', '--no-install-recommends', ...PACKAGES],
      folder: CACHE,
      boundMs: FETCH_BOUND_MS,
      isUsable: async () => existsSync(FETCHED),
    })
  } catch (error) {
    throw new Error(
      `there is no chromium on the PATH, and fetching Debian's packages failed. Install chromium. ` +
        `${error instanceof Error ? error.message.trim() : error}`,
      { cause: error },
    )
  }
}

/** Fonts of the machine and our own. */
const fontConfiguration = (): string =>
  [
    '<?xml version="1.0"?>',
    '<!DOCTYPE fontconfig SYSTEM "fonts.dtd">',
    '<fontconfig>',
    '  <dir>/usr/share/fonts</dir>',
    `  <dir>${join(CACHE, 'usr', 'share', 'fonts')}</dir>`,
    '  <alias><family>monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>',
    `  <cachedir>${join(CACHE, 'font-cache')}</cachedir>`,
    '</fontconfig>',
    '',
  ].join('\n')
