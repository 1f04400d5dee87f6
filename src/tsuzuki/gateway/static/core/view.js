// What every part is written with: Preact by tagged templates, hooks and signals. The only file that knows how they are vendored.
import { h } from "../vendor/preact.js";
import htm from "../vendor/htm.js";

export { Component, Fragment, h, render } from "../vendor/preact.js";
export { useCallback, useEffect, useErrorBoundary, useId, useLayoutEffect, useMemo, useRef, useState } from "../vendor/hooks.js";
export { batch, computed, effect, signal, useComputed, useSignal } from "../vendor/signals.js";

/** Templates in place of JSX: text that is put in stays text. */
export const html = htm.bind(h);
