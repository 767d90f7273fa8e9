// How the shell is built: one page, files of its own origin only, so that a strict content security policy holds.

import { readFileSync } from 'node:fs'

import { svelte } from '@sveltejs/vite-plugin-svelte'
import { defineConfig } from 'vitest/config'

/** Where a shell's server answers while one works on the page: `CONDUCTOR_SHELL=http://127.0.0.1:PORT npm run dev`. */
const shell = process.env['CONDUCTOR_SHELL']

/** The version of the workspace, which is the host's: the page says where it talks with a host of another one. */
const version = /^\[workspace\.package\][^[]*?^version = "([^"]+)"/ms.exec(readFileSync(new URL('../../../Cargo.toml', import.meta.url), 'utf8'))?.[1]
if (!version) throw new Error('Cargo.toml of the repository names no version')

export default defineConfig({
  define: { PAGE_VERSION: JSON.stringify(version) },
  plugins: [svelte()],
  build: {
    target: 'es2023',
    // The policy has `data:` for images alone; a font or a script within another file would be refused.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    sourcemap: false,
    chunkSizeWarningLimit: 400,
  },
  server: shell ? { proxy: { '/v1': { target: shell, ws: true } } } : {},
  // Tests draw parts of the page: of Svelte's two halves they need the browser's.
  resolve: process.env['VITEST'] ? { conditions: ['browser'] } : {},
  test: { include: ['src/**/*.test.ts'], environment: 'jsdom' },
})
